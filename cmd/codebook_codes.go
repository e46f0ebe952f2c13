package cmd

import "mqx/remoting"

// said is a text in the two languages of mqx explain.
type said struct{ en, zh string }

// codeEntry explains a response code: what it means, and what to do about it.
type codeEntry struct {
	code          int32
	meaning, todo said
}

// codebook explains the response codes, by code.
var codebook = []codeEntry{
	{remoting.RespRPCTimeOut, said{"a server waited in vain for the answer of another server", "一台服务器等待另一台服务器的应答超时"}, said{"look at the server that was asked: mqx admin broker status", "检查被请求的服务器:mqx admin broker status"}},
	{remoting.RespRPCSendToChannelFailed, said{"a server could not send a request to another server", "一台服务器无法把请求发给另一台服务器"}, said{"check the network between brokers and the addresses they advertise: mqx admin cluster join-check", "检查 Broker 之间的网络和对外公布的地址:mqx admin cluster join-check"}},
	{remoting.RespRPCAddrIsNull, said{"a server does not know the address of the broker that has the queue", "服务器不知道该队列所在 Broker 的地址"}, said{"see whether that broker is registered: mqx admin broker ls", "查看该 Broker 是否已注册:mqx admin broker ls"}},
	{remoting.RespRPCUnknown, said{"a request from server to server failed for a reason that is not named", "服务器之间的请求因未说明的原因失败"}, said{"the remark and the log of the broker say more: mqx logs errors FILE", "查看备注和 Broker 日志:mqx logs errors FILE"}},
	{remoting.RespSuccess, said{"it was done", "成功"}, said{"nothing", "无需处理"}},
	{remoting.RespSystemError, said{"the request failed; the remark says why", "请求失败,原因见备注"}, said{"mqx explain 'REMARK' explains the usual remarks; else the log of the broker says more", "用 mqx explain '备注' 查看常见原因,否则查看 Broker 日志"}},
	{remoting.RespSystemBusy, said{"the broker takes no more requests of this kind for now; the remark names the stage", "Broker 暂时不再接受此类请求,备注中写明了阶段"}, said{"send again after a moment; where it lasts, see what holds it up: mqx top, brokers, QUEUED and LOCK", "稍后重试;若持续,查看 mqx top 的 brokers 页 QUEUED 与 LOCK 列"}},
	{remoting.RespRequestCodeNotSupported, said{"the server does not serve this kind of request", "服务器不支持该请求类型"}, said{"see docs/compatibility.md and the version of the broker: mqx admin broker ls", "查看 docs/compatibility.md 与 Broker 版本:mqx admin broker ls"}},
	{remoting.RespTransactionFailed, said{"the transaction could not be carried out", "事务执行失败"}, said{"see the log of the producer, whose listener failed", "查看生产者日志,其事务监听器出错"}},
	{remoting.RespFlushDiskTimeout, said{"the message is stored, but was not on disk within syncFlushTimeout", "消息已写入,但未在 syncFlushTimeout 内刷盘"}, said{"do not count it as lost: it may be delivered, and sending again may make a double; look at the disk: mqx doctor host", "不要视为丢失:消息可能仍会投递,重发可能重复;检查磁盘:mqx doctor host"}},
	{remoting.RespSlaveNotAvailable, said{"the message is stored at the master, and no replica is near enough to take it", "消息已在主节点写入,但没有可用的从节点"}, said{"look at the replicas: mqx admin ha get", "查看副本状态:mqx admin ha get"}},
	{remoting.RespFlushSlaveTimeout, said{"the message is stored at the master, and replicas did not confirm it in time", "消息已在主节点写入,从节点未及时确认"}, said{"look at the gap of the replicas: mqx admin ha get", "查看副本延迟:mqx admin ha get"}},
	{remoting.RespMessageIllegal, said{"the message or its topic is not allowed: too large, an illegal name, or a property too long", "消息或主题不合法:过大、名称非法或属性过长"}, said{"the remark says what; maxMessageSize is shown by mqx admin config get -b BROKER", "原因见备注;用 mqx admin config get -b BROKER 查看 maxMessageSize"}},
	{remoting.RespServiceNotAvailable, said{"the broker writes nothing now: its disk is full, it is a replica, it is shutting down, or it does not accept yet", "Broker 当前不可写:磁盘满、是从节点、正在关闭或尚未开始接受"}, said{"see its disk and role: mqx top, brokers; then mqx admin broker purge BROKER --expired", "查看磁盘与角色(mqx top 的 brokers 页),再执行 mqx admin broker purge BROKER --expired"}},
	{remoting.RespVersionNotSupported, said{"the version of the client or of the request is not supported", "客户端或请求的版本不受支持"}, said{"see the versions of the clients: mqx admin client ls", "查看客户端版本:mqx admin client ls"}},
	{remoting.RespNoPermission, said{"not allowed: the permission of broker, topic or group, or the access control", "没有权限:Broker、主题、消费组的权限或访问控制"}, said{"see mqx admin topic get TOPIC (perm), brokerPermission, and mqx admin acl", "查看 mqx admin topic get TOPIC 的 perm、brokerPermission 和 mqx admin acl"}},
	{remoting.RespTopicNotExist, said{"the topic does not exist there", "主题不存在"}, said{"mqx admin topic ls shows what exists; mqx admin topic create TOPIC makes it", "mqx admin topic ls 查看现有主题,mqx admin topic create TOPIC 创建"}},
	{remoting.RespTopicExistAlready, said{"the topic exists already", "主题已存在"}, said{"change it with mqx admin topic set TOPIC", "用 mqx admin topic set TOPIC 修改"}},
	{remoting.RespPullNotFound, said{"there is no new message at that offset; clients ask again by themselves", "该位点没有新消息,客户端会自行重新拉取"}, said{"nothing: it is how an empty queue answers", "无需处理:空队列就是这样应答"}},
	{remoting.RespPullRetryImmediately, said{"the messages there do not match the subscription, or the broker wants to be asked again at once", "该处消息不匹配订阅,或 Broker 要求立即重试"}, said{"nothing, unless it goes on: compare the tags of the messages with the subscription", "无需处理;若持续,核对消息的 tag 与订阅"}},
	{remoting.RespPullOffsetMoved, said{"the offset is outside of the queue: its messages were deleted, or it is beyond the end", "位点不在队列范围内:消息已被删除,或超出末尾"}, said{"see what was lost: mqx admin lag get -g GROUP; retention is fileReservedTime", "查看丢失情况:mqx admin lag get -g GROUP;保留时间为 fileReservedTime"}},
	{remoting.RespQueryNotFound, said{"what was asked for is not there: a message, an offset or a key", "查询的对象不存在:消息、位点或键"}, said{"an id of an expired message is not found any more; a group without an offset starts by its own rule", "过期消息无法再查到;没有位点的消费组按自身规则开始"}},
	{remoting.RespSubscriptionParseFailed, said{"the subscription expression cannot be read", "订阅表达式无法解析"}, said{"correct the tag or SQL92 expression of the consumer", "修正消费者的 tag 或 SQL92 表达式"}},
	{remoting.RespSubscriptionNotExist, said{"the broker does not know that the consumer subscribes to the topic", "Broker 不知道该消费者订阅了此主题"}, said{"it passes with the next heartbeat; where it lasts, members of one group subscribe to different things: mqx admin group status GROUP", "下一次心跳后会消失;若持续,说明同组成员订阅不一致:mqx admin group status GROUP"}},
	{remoting.RespSubscriptionNotLatest, said{"the subscription at the broker is newer than that of the request", "Broker 上的订阅比请求中的新"}, said{"members of one group subscribe to different things: mqx admin group status GROUP", "同组成员订阅不一致:mqx admin group status GROUP"}},
	{remoting.RespSubscriptionGroupNotExist, said{"the consumer group does not exist, and is not made by itself", "消费组不存在,且不会自动创建"}, said{"mqx admin group create GROUP", "mqx admin group create GROUP"}},
	{remoting.RespFilterDataNotExist, said{"the broker has no filter of this consumer for the topic", "Broker 上没有该消费者在此主题的过滤数据"}, said{"it passes with the next heartbeat of the consumer", "消费者下一次心跳后恢复"}},
	{remoting.RespFilterDataNotLatest, said{"the filter at the broker is older than the consumer's", "Broker 上的过滤数据比消费者的旧"}, said{"it passes with the next heartbeat of the consumer", "消费者下一次心跳后恢复"}},
	{remoting.RespInvalidParameter, said{"a parameter of the request is not valid; the remark names it", "请求参数无效,备注中写明是哪一个"}, said{"correct what the remark names", "修正备注所指的参数"}},
	{remoting.RespTransactionShouldCommit, said{"the transaction is to be committed", "事务应提交"}, said{"nothing: it is an answer between client and broker", "无需处理:这是客户端与 Broker 之间的应答"}},
	{remoting.RespTransactionShouldRollback, said{"the transaction is to be rolled back", "事务应回滚"}, said{"nothing: it is an answer between client and broker", "无需处理:这是客户端与 Broker 之间的应答"}},
	{remoting.RespTransactionStateUnknown, said{"the state of the transaction is not known yet", "事务状态尚未知"}, said{"the broker asks the producer again; see that one of its group is connected: mqx admin producer ls", "Broker 会再次回查,确认该组生产者在线:mqx admin producer ls"}},
	{remoting.RespTransactionStateGroupWrong, said{"the transaction belongs to another producer group", "事务属于另一个生产者组"}, said{"end it with the group that has begun it", "由发起它的生产者组结束"}},
	{remoting.RespNoBuyerID, said{"the request has no buyer id, which units need", "请求缺少单元化所需的 buyer id"}, said{"only deployments in units send this: give the id", "仅单元化部署会出现:补上该 id"}},
	{remoting.RespNotInCurrentUnit, said{"the request belongs to another unit", "请求属于另一个单元"}, said{"send it to the unit that it belongs to", "发送到所属单元"}},
	{remoting.RespConsumerNotOnline, said{"no member of the group is connected to this broker", "该消费组没有成员连接到此 Broker"}, said{"see who is: mqx admin client ls -g GROUP", "查看在线成员:mqx admin client ls -g GROUP"}},
	{remoting.RespConsumeMsgTimeout, said{"a consumer did not answer in time when it was handed the message directly", "直接投递给消费者的消息未及时得到应答"}, said{"see what it does: mqx admin client get CLIENT", "查看该客户端:mqx admin client get CLIENT"}},
	{remoting.RespNoMessage, said{"the broker has no message to hand out", "Broker 没有可投递的消息"}, said{"nothing: it is how an empty queue answers", "无需处理:空队列就是这样应答"}},
	{remoting.RespPollingFull, said{"too many requests wait for messages at the broker", "Broker 上等待消息的请求过多"}, said{"use fewer clients, or raise maxPopPollingSize and popPollingSize", "减少客户端数量,或提高 maxPopPollingSize、popPollingSize"}},
	{remoting.RespPollingTimeout, said{"no message came while the request waited; clients ask again", "等待期间没有新消息,客户端会再次请求"}, said{"nothing", "无需处理"}},
	{remoting.RespBrokerNotExist, said{"the name server knows no such broker", "名字服务器不认识该 Broker"}, said{"mqx admin broker ls shows which are registered", "mqx admin broker ls 查看已注册的 Broker"}},
	{remoting.RespBrokerDispatchNotComplete, said{"consume queues are not yet made up to the end of the log", "消费队列尚未构建到日志末尾"}, said{"wait: mqx admin broker status BROKER shows dispatchBehindBytes", "等待:mqx admin broker status BROKER 查看 dispatchBehindBytes"}},
	{remoting.RespBroadcastConsumption, said{"the group reads in broadcast: the broker does not keep its offsets", "该组为广播消费,Broker 不保存其位点"}, said{"offsets are on the machines of the consumers", "位点保存在各消费者机器上"}},
	{remoting.RespFlowControl, said{"too many requests: the server limits this client", "请求过多,服务器对该客户端限流"}, said{"send more slowly, or see the limits of the server", "降低发送速度,或查看服务器限流配置"}},
	{remoting.RespNotLeaderForQueue, said{"this broker does not lead the queue of a static topic any more", "此 Broker 已不再负责该静态主题队列"}, said{"clients read the route anew; see the mapping: mqx admin topic get TOPIC", "客户端会刷新路由;查看映射:mqx admin topic get TOPIC"}},
	{remoting.RespIllegalOperation, said{"the operation is not possible in this state or for this kind of topic", "当前状态或该类主题不允许此操作"}, said{"the remark says why", "原因见备注"}},
	{remoting.RespGoAway, said{"the server is shutting down: the client is to connect anew", "服务器正在关闭,客户端应重新连接"}, said{"nothing: clients since 5.3.1 do so by themselves", "无需处理:5.3.1 起的客户端会自行重连"}},
	{remoting.RespControllerFencedMasterEpoch, said{"the request has the epoch of an earlier master", "请求携带旧的主节点纪元"}, said{"the broker asks the controller for its role by itself; where it lasts: mqx admin controller get", "Broker 会自行向控制器获取角色;若持续:mqx admin controller get"}},
	{remoting.RespControllerFencedSyncStateSetEpoch, said{"the set of replicas in sync has changed since", "同步副本集合已更新"}, said{"the master reads it anew by itself", "主节点会自行重新读取"}},
	{remoting.RespControllerInvalidMaster, said{"the one who asks is not the master", "请求方不是主节点"}, said{"see who is: mqx admin ha get", "查看主节点:mqx admin ha get"}},
	{remoting.RespControllerInvalidReplicas, said{"the replicas named are none of this broker", "所列副本不属于该 Broker"}, said{"see the replicas: mqx admin ha get", "查看副本:mqx admin ha get"}},
	{remoting.RespControllerMasterNotAvailable, said{"there is no master, and none can be elected", "没有主节点,也无法选出"}, said{"start a replica that was in sync; enableElectUncleanMaster gives up messages", "启动同步集合中的副本;enableElectUncleanMaster 会丢消息"}},
	{remoting.RespControllerInvalidRequest, said{"the controller cannot make out the request", "控制器无法理解该请求"}, said{"compare the versions of broker and controller", "比较 Broker 与控制器版本"}},
	{remoting.RespControllerBrokerNotAlive, said{"the broker does not send heartbeats to the controller", "该 Broker 未向控制器发送心跳"}, said{"see that it runs and reaches the controller: controllerAddr", "确认其运行且可达控制器:controllerAddr"}},
	{remoting.RespControllerNotLeader, said{"this controller does not lead its group", "此控制器不是主控制器"}, said{"ask the leader, which mqx admin controller get names", "请求主控制器,见 mqx admin controller get"}},
	{remoting.RespControllerBrokerMetadataNotExist, said{"the controller has no metadata of the broker", "控制器没有该 Broker 的元数据"}, said{"the broker has to register there first", "该 Broker 需先注册"}},
	{remoting.RespControllerInvalidCleanBrokerMetadata, said{"metadata of a broker that lives cannot be cleaned", "不能清理存活 Broker 的元数据"}, said{"stop the broker first", "先停止该 Broker"}},
	{remoting.RespControllerBrokerNeedToBeRegistered, said{"the broker has to register at the controller again", "该 Broker 需要重新向控制器注册"}, said{"it does so by itself; where it lasts, see its log", "会自行注册;若持续,查看日志"}},
	{remoting.RespControllerMasterStillExist, said{"the master still lives, so no other is elected", "主节点仍存活,不会选举新主"}, said{"stop it, or name the broker that is to lead", "停止它,或指定新主"}},
	{remoting.RespControllerElectMasterFailed, said{"no master could be elected", "选主失败"}, said{"see which replicas live and are in sync: mqx admin ha get", "查看存活且同步的副本:mqx admin ha get"}},
	{remoting.RespControllerAlterSyncStateSetFailed, said{"the set of replicas in sync could not be changed", "修改同步副本集合失败"}, said{"the master tries again by itself", "主节点会自行重试"}},
	{remoting.RespControllerBrokerIDInvalid, said{"the broker id is taken or is none", "Broker ID 已被占用或无效"}, said{"see the identity file of the broker in its store directory", "查看存储目录中的身份文件"}},
	{remoting.RespControllerJRaftInternalError, said{"the group of controllers failed within itself", "控制器组内部错误"}, said{"see the log of the controller", "查看控制器日志"}},
	{remoting.RespControllerBrokerLiveInfoNotExists, said{"the controller has no sign of life of the broker", "控制器没有该 Broker 的存活信息"}, said{"wait for its next heartbeat", "等待其下一次心跳"}},
	{remoting.RespLMQQuotaExceeded, said{"there are as many light queues as are allowed", "轻量队列数量已达上限"}, said{"remove some, or raise maxLmqConsumeQueueNum", "删除一些,或提高 maxLmqConsumeQueueNum"}},
	{remoting.RespLiteSubscriptionQuotaExceeded, said{"the client has as many lite subscriptions as are allowed", "该客户端的轻量订阅数量已达上限"}, said{"subscribe to fewer lite topics a client", "减少每个客户端订阅的轻量主题"}},
	{remoting.RespUserNotExist, said{"the user does not exist", "用户不存在"}, said{"mqx admin acl user ls shows those that do", "mqx admin acl user ls 查看现有用户"}},
	{remoting.RespPolicyNotExist, said{"the policy does not exist", "策略不存在"}, said{"mqx admin acl policy ls shows those that do", "mqx admin acl policy ls 查看现有策略"}},
}
