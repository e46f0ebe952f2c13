package cmd

// textEntry explains a remark of a broker or an error of a client: by a part of it, in
// lower case, that does not change.
type textEntry struct {
	part          string
	meaning, todo said
}

// remarks explains texts, the more special first.
var remarks = []textEntry{
	{"[timeout_clean_queue]", said{"the request waited longer in its queue than waitTimeMillsIn…Queue allows, and was answered without being served", "请求在队列中等待超过 waitTimeMillsIn…Queue,被直接拒绝"}, said{"the broker is slower than what comes in: see stage, PUT P99 and LOCK in mqx top, mqx logs slow FILE, the disk in mqx doctor host", "Broker 处理慢于流入:看 mqx top 的 PUT P99 与 LOCK、mqx logs slow FILE、mqx doctor host"}},
	{"[overload]connection refused", said{"the server takes no more connections, of this address or in all", "服务器不再接受该地址或全部的新连接"}, said{"close connections that nobody needs, or raise the limits and the number of descriptors", "关闭无用连接,或提高连接上限与文件描述符数"}},
	{"[overload]", said{"the queue of the stage that is named is full", "备注所指阶段的队列已满"}, said{"send more slowly; see QUEUED in mqx top and the key of that pool in docs/operations.md", "降低发送速度;看 mqx top 的 QUEUED 列与该线程池配置"}},
	{"[rejectrequest]", said{"the broker refuses sends because its page cache is busy or its buffers are used up", "页缓存繁忙或缓冲耗尽,Broker 拒绝发送"}, said{"an append holds the log longer than osPageCacheBusyTimeOutMills: look at the disk and at Dirty pages: mqx doctor host", "追加写占用日志超过 osPageCacheBusyTimeOutMills:检查磁盘与脏页:mqx doctor host"}},
	{"[pcbusy_clean_queue]", said{"the page cache was busy, and what waited was sent back", "页缓存繁忙,排队请求被清退"}, said{"look at the disk and at Dirty pages: mqx doctor host; transientStorePoolEnable or faster disks mend it in Apache", "检查磁盘与脏页:mqx doctor host"}},
	{"[pc_synchronized]", said{"an append has held the log for longer than osPageCacheBusyTimeOutMills", "一次追加写占用日志超过 osPageCacheBusyTimeOutMills"}, said{"look at the disk: mqx doctor host; and at LOCK in mqx top", "检查磁盘:mqx doctor host;看 mqx top 的 LOCK 列"}},
	{"too many requests and system thread pool busy", said{"the pool of this kind of request is full (brokers before 5)", "该类请求的线程池已满(5.0 之前的 Broker)"}, said{"send more slowly, or give the pool more threads", "降低速度或增加线程"}},
	{"% full", said{"the disk is over its last line, and the broker writes nothing until it is under it again", "磁盘超过最高水位,Broker 停止写入直到降回水位之下"}, said{"make room: mqx admin broker purge BROKER --expired, or a lower fileReservedTime", "清理空间:mqx admin broker purge BROKER --expired,或降低 fileReservedTime"}},
	{"service not available now", said{"the broker writes nothing now: disk full, replica, shutting down, or a flush that failed", "Broker 当前不可写:磁盘满、从节点、正在关闭或刷盘失败"}, said{"what follows in the remark says which; see mqx top, brokers", "备注后文写明原因;查看 mqx top 的 brokers 页"}},
	{"apply first please", said{"the topic does not exist at this broker and is not made by itself", "此 Broker 上没有该主题,且不会自动创建"}, said{"mqx admin topic create TOPIC -b BROKER, or mqx admin topic spread after a broker was added", "mqx admin topic create TOPIC -b BROKER;新增 Broker 后用 mqx admin topic spread"}},
	{"no route info of this topic", said{"the name servers have no route: no such topic, or no broker that has it is registered there", "名字服务器没有路由:主题不存在,或拥有它的 Broker 未注册"}, said{"mqx admin topic get TOPIC; mqx admin broker ls; compare all name servers: mqx admin nameserver ls", "mqx admin topic get TOPIC;mqx admin broker ls;核对所有名字服务器:mqx admin nameserver ls"}},
	{"no topic route info in name server", said{"the name server has no route for the topic", "名字服务器没有该主题的路由"}, said{"mqx admin topic ls; create it, or see whether its broker is registered: mqx admin broker ls", "mqx admin topic ls;创建主题,或确认其 Broker 已注册:mqx admin broker ls"}},
	{"sending message is forbidden", said{"the permission of broker or topic has no w", "Broker 或主题的权限不含写(w)"}, said{"mqx admin topic set TOPIC --perm rw, or mqx admin config set -b BROKER brokerPermission=6", "mqx admin topic set TOPIC --perm rw,或 mqx admin config set -b BROKER brokerPermission=6"}},
	{"pulling message is forbidden", said{"the permission of broker or topic has no r", "Broker 或主题的权限不含读(r)"}, said{"mqx admin topic set TOPIC --perm rw, or mqx admin config set -b BROKER brokerPermission=6", "mqx admin topic set TOPIC --perm rw,或 mqx admin config set -b BROKER brokerPermission=6"}},
	{"peeking message is forbidden", said{"the permission of the broker has no r", "Broker 的权限不含读(r)"}, said{"mqx admin config set -b BROKER brokerPermission=6", "mqx admin config set -b BROKER brokerPermission=6"}},
	{"subscription group no permission", said{"the group is switched off", "消费组被禁止消费"}, said{"mqx admin group set GROUP --consume=true", "mqx admin group set GROUP --consume=true"}},
	{"subscription group not exist", said{"the group does not exist, and autoCreateSubscriptionGroup is off", "消费组不存在,且关闭了 autoCreateSubscriptionGroup"}, said{"mqx admin group create GROUP", "mqx admin group create GROUP"}},
	{"subscription group does not exist", said{"the group does not exist at this broker", "此 Broker 上没有该消费组"}, said{"mqx admin group create GROUP", "mqx admin group create GROUP"}},
	{"no group in this broker", said{"the group does not exist at this broker", "此 Broker 上没有该消费组"}, said{"mqx admin group ls", "mqx admin group ls"}},
	{"no topic in this broker", said{"the topic does not exist at this broker", "此 Broker 上没有该主题"}, said{"mqx admin topic get TOPIC shows the brokers that have it", "mqx admin topic get TOPIC 查看拥有它的 Broker"}},
	{"the consumer's subscription not exist", said{"the broker does not know that the group subscribes to the topic", "Broker 不知道该组订阅了此主题"}, said{"members of one group subscribe to different topics: mqx admin group status GROUP", "同组成员订阅了不同主题:mqx admin group status GROUP"}},
	{"subscription not latest", said{"members of one group subscribe to different things", "同组成员订阅不一致"}, said{"mqx admin group status GROUP", "mqx admin group status GROUP"}},
	{"does not support consumer to filter message by sql92", said{"enablePropertyFilter is off at the broker", "Broker 未开启 enablePropertyFilter"}, said{"mqx admin config set -b BROKER enablePropertyFilter=true", "mqx admin config set -b BROKER enablePropertyFilter=true"}},
	{"parse the consumer's subscription failed", said{"the expression of the subscription cannot be read", "订阅表达式无法解析"}, said{"correct the expression of the consumer", "修正消费者的表达式"}},
	{"msg body or properties length not matched", said{"the body is longer than maxMessageSize, or the properties than 32767 bytes", "消息体超过 maxMessageSize,或属性超过 32767 字节"}, said{"send less, or raise maxMessageSize at broker and client", "减小消息,或同时提高 Broker 与客户端的 maxMessageSize"}},
	{"message body size over max value", said{"the body is larger than maxMessageSize of the client", "消息体超过客户端的 maxMessageSize"}, said{"send less, or raise maxMessageSize at client and broker", "减小消息,或同时提高客户端与 Broker 的 maxMessageSize"}},
	{"timer message illegal", said{"the delay is longer than timerMaxDelaySec, or cannot be read", "定时消息的延时超过 timerMaxDelaySec 或格式错误"}, said{"give a time within timerMaxDelaySec", "时间应在 timerMaxDelaySec 之内"}},
	{"timer message wheel flow control", said{"too many timer messages are due at the same moment", "同一时刻的定时消息过多"}, said{"spread the times, or raise timerCongestNumEachSlot", "分散时间,或提高 timerCongestNumEachSlot"}},
	{"is illegal, topic:", said{"the number of the queue is not one of the topic's at this broker", "该队列号不在此 Broker 的主题队列范围内"}, said{"the client has an old route: wait 30 s; see mqx admin topic get TOPIC", "客户端路由过旧:等待 30 秒;查看 mqx admin topic get TOPIC"}},
	{"offset is illegal", said{"the message that was popped is no longer within the queue", "pop 的消息已不在队列范围内"}, said{"it was deleted, or the offset reset meanwhile", "消息已被删除,或位点被重置"}},
	{"maybe this group consumer boot first", said{"the group has no offset here yet: the consumer starts by its own rule", "该组在此尚无位点,消费者按自身规则开始"}, said{"nothing for a new group; for an old one mqx admin offset reset -g GROUP", "新组无需处理;旧组用 mqx admin offset reset -g GROUP"}},
	{"not online", said{"no member of the group, or not that client, is connected to this broker", "该组没有成员或该客户端未连接到此 Broker"}, said{"mqx admin client ls -g GROUP", "mqx admin client ls -g GROUP"}},
	{"no consumer for this group", said{"no member of the group is connected to this broker", "该组没有成员连接到此 Broker"}, said{"mqx admin client ls -g GROUP", "mqx admin client ls -g GROUP"}},
	{"please go away", said{"the server is shutting down", "服务器正在关闭"}, said{"nothing: clients connect anew", "无需处理:客户端会重连"}},
	{"request type", said{"the server does not serve this request code", "服务器不支持该请求码"}, said{"see docs/compatibility.md and the version of the broker", "查看 docs/compatibility.md 与 Broker 版本"}},
	{"fault while serving the request", said{"mqx met a fault of its own; its log has the stack", "mqx 自身出错,日志中有堆栈"}, said{"mqx logs errors FILE; please report it", "mqx logs errors FILE;请上报"}},
	{"signature", said{"the signature of the request is not that of the access key", "请求签名与 accessKey 不符"}, said{"compare access key and secret of client and broker", "核对客户端与 Broker 的 accessKey、secretKey"}},
	{"no such user", said{"the access control knows no such user", "访问控制中没有该用户"}, said{"mqx admin acl user ls", "mqx admin acl user ls"}},
	{"has no permission", said{"no policy allows that", "没有策略允许此操作"}, said{"mqx admin acl policy ls", "mqx admin acl policy ls"}},
	{"wait response on the channel", said{"the server took the request and did not answer within the client's time-out: busy, stopped, or what it was asked is lost", "服务器已收到请求,但未在客户端超时内应答:繁忙、停顿或应答丢失"}, said{"a send may have been stored all the same; see mqx top, brokers, QUEUED and LOCK, and mqx logs slow with its log", "发送可能已成功存储;看 mqx top 的 QUEUED 与 LOCK 列,并对其日志运行 mqx logs slow"}},
	{"senddefaultimpl call timeout", said{"all tries of a send together took longer than sendMsgTimeout", "一次发送的全部重试超过 sendMsgTimeout"}, said{"it may have been stored; a longer sendMsgTimeout, and mqx doctor for what is slow", "消息可能已存储;加大 sendMsgTimeout,并用 mqx doctor 查找慢的原因"}},
	{"has been created before", said{"a process started the same group twice with one client id", "同一进程以同一客户端标识重复启动了该组"}, said{"one instance a group and process, or an instance name of its own (setInstanceName)", "每个进程每组一个实例,或设置不同的 instanceName"}},
	{"no name server address", said{"the client was given no name servers", "客户端未配置 NameServer 地址"}, said{"setNamesrvAddr, or NAMESRV_ADDR in its environment", "设置 namesrvAddr 或环境变量 NAMESRV_ADDR"}},
	{"connection refused", said{"nothing listens at that address", "该地址没有监听"}, said{"see that the server runs there: mqx admin broker ls shows the addresses that are advertised", "确认服务已启动;mqx admin broker ls 查看公布的地址"}},
	{"connect to", said{"the client cannot reach the address that a broker advertises", "客户端无法连接 Broker 公布的地址"}, said{"brokerIP1 has to be reachable from the client: mqx doctor", "brokerIP1 必须可从客户端访问:mqx doctor"}},
	{"sendthreadpoolqueue", said{"sends wait for workers", "发送请求在等待线程"}, said{"see QUEUED and PUT P99 in mqx top", "看 mqx top 的 QUEUED 与 PUT P99"}},
	{"no space left on device", said{"the disk is full", "磁盘已满"}, said{"make room: mqx admin broker purge BROKER --expired", "清理空间:mqx admin broker purge BROKER --expired"}},
	{"too many open files", said{"the process has no descriptors left", "进程的文件描述符已用尽"}, said{"raise LimitNOFILE of the unit to 655350: mqx doctor host", "把 LimitNOFILE 提高到 655350:mqx doctor host"}},
}
