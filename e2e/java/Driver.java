import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * The Java client of Apache RocketMQ behind a line protocol: a request is one JSON
 * object on a line of stdin, the answer one on a line of stdout behind "@@". Many
 * commands run in one JVM, because starting one takes seconds.
 */
public final class Driver {
    private static final PrintStream OUT = System.out;
    private static final Map<String, DefaultMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    private static final Map<String, DefaultMQPullConsumer> PULLS = new ConcurrentHashMap<>();
    private static final Map<String, DefaultMQAdminExt> ADMINS = new ConcurrentHashMap<>();
    private static final Map<String, Push> PUSHES = new ConcurrentHashMap<>();

    private Driver() {
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // what libraries print is no answer
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject answer = new JSONObject();
            try {
                answer.put("result", run(JSON.parseObject(line)));
            } catch (Throwable e) {
                answer.put("error", e.toString());
            }
            synchronized (OUT) {
                OUT.println("@@" + JSON.toJSONString(answer, JSONWriter.Feature.WriteMapNullValue));
                OUT.flush();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static Object run(JSONObject q) throws Exception {
        switch (q.getString("cmd")) {
            case "send":
                return send(q);
            case "push":
                return push(q);
            case "received":
                return PUSHES.get(q.getString("id")).received();
            case "popAssigned":
                return PUSHES.get(q.getString("id")).popAssigned();
            case "assigned":
                return PUSHES.get(q.getString("id")).assigned();
            case "stop":
                PUSHES.remove(q.getString("id")).consumer.shutdown();
                return null;
            case "pull":
                return pull(q);
            case "recall":
                return producer(q.getString("namesrv"), null).recallMessage(q.getString("topic"), q.getString("handle"));
            case "sendToRetry":
                return sendToRetry(q);
            case "admin":
                return admin(q);
            case "brokers":
                return new ArrayList<>(adminExt(q.getString("namesrv")).examineBrokerClusterInfo().getBrokerAddrTable().keySet());
            case "route":
                return route(q);
            case "createTopic":
                return createTopic(q);
            case "judgeFilters":
                return FilterJudge.judge(q);
            case "bloom":
                return FilterJudge.bloom(q);
            case "transactions":
                return Transactions.send(q);
            case "transactionsChecked":
                return Transactions.checked(q);
            case "transactionsStop":
                return Transactions.stop(q);
            case "litePull":
                return LitePulls.start(q);
            case "litePullPoll":
                return LitePulls.poll(q);
            case "litePullHeld":
                return LitePulls.held(q);
            case "litePullStop":
                return LitePulls.stop(q);
            case "isOrdered":
                return isOrdered(q);
            case "createGroup":
                return createGroup(q);
            case "replier":
                return Requests.reply(q);
            case "request":
                return Requests.request(q);
            case "replierStop":
                return Requests.stop(q);
            default:
                throw new IllegalArgumentException("unknown command " + q.getString("cmd"));
        }
    }

    private static DefaultMQProducer producer(String namesrv, String namespace) throws Exception {
        return producer(namesrv, namespace, false, false);
    }

    private static DefaultMQProducer producer(String namesrv, String namespace, boolean unit, boolean trace) throws Exception {
        String key = (namespace == null ? namesrv : namespace + "@" + namesrv) + (unit ? " unit" : "") + (trace ? " trace" : "");
        DefaultMQProducer p = PRODUCERS.get(key);
        if (p == null) {
            p = new DefaultMQProducer("e2e_java_producer", null, trace, null);
            p.setNamesrvAddr(namesrv);
            if (namespace != null) {
                p.setNamespace(namespace);
            }
            p.setUnitMode(unit);
            p.setEnableTrace(trace);
            p.setInstanceName("p" + Integer.toHexString(key.hashCode()));
            p.setSendMsgTimeout(10000);
            quick(p);
            p.start();
            PRODUCERS.put(key, p);
        }
        return p;
    }

    /** With -Ddriver.poll=MILLIS a client asks for routes and sends heartbeats so often. */
    private static void quick(ClientConfig c) {
        Integer poll = Integer.getInteger("driver.poll");
        if (poll != null) {
            c.setPollNameServerInterval(poll);
            c.setHeartbeatBrokerInterval(poll);
        }
    }

    private static Message message(String topic, JSONObject m) {
        Message msg = new Message(topic, Base64.getDecoder().decode(m.getString("body")));
        if (m.getString("tag") != null) {
            msg.setTags(m.getString("tag"));
        }
        if (m.getString("keys") != null) {
            msg.setKeys(m.getString("keys"));
        }
        JSONObject properties = m.getJSONObject("properties");
        if (properties != null) {
            for (String name : properties.keySet()) {
                msg.putUserProperty(name, properties.getString(name));
            }
        }
        JSONObject system = m.getJSONObject("system");
        if (system != null) {
            for (String name : system.keySet()) {
                MessageAccessor.putProperty(msg, name, system.getString(name));
            }
        }
        return msg;
    }

    private static Object send(JSONObject q) throws Exception {
        DefaultMQProducer p = producer(q.getString("namesrv"), q.getString("namespace"), q.getBooleanValue("unit"), q.getBooleanValue("trace"));
        String topic = q.getString("topic");
        String mode = q.getString("mode");
        JSONArray in = q.getJSONArray("messages");
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < in.size(); i++) {
            messages.add(message(topic, in.getJSONObject(i)));
        }
        List<Object> results = new ArrayList<>();
        switch (mode) {
            case "sync":
                for (Message m : messages) {
                    results.add(result(p.send(m)));
                }
                break;
            case "shard":
                for (Message m : messages) {
                    results.add(result(p.send(m, new SelectMessageQueueByHash(), q.getString("shard"))));
                }
                break;
            case "oneway":
                for (Message m : messages) {
                    p.sendOneway(m);
                }
                break;
            case "batch":
                results.add(result(p.send(messages)));
                break;
            case "async":
                sendAsync(p, messages, results);
                break;
            default:
                throw new IllegalArgumentException("unknown mode " + mode);
        }
        return results;
    }

    /** A message that a client sends to the retry topic of a group itself, as its attempt number "times" of "max". */
    private static Object sendToRetry(JSONObject q) throws Exception {
        Message m = message("%RETRY%" + q.getString("group"), q);
        MessageAccessor.setReconsumeTime(m, q.getString("times"));
        MessageAccessor.setMaxReconsumeTimes(m, q.getString("max"));
        MessageAccessor.putProperty(m, "RETRY_TOPIC", q.getString("topic"));
        MessageAccessor.setOriginMessageId(m, q.getString("origin"));
        return result(producer(q.getString("namesrv"), null).send(m));
    }

    private static void sendAsync(DefaultMQProducer p, List<Message> messages, List<Object> results) throws Exception {
        CountDownLatch all = new CountDownLatch(messages.size());
        List<Object> done = new CopyOnWriteArrayList<>();
        List<String> failed = new CopyOnWriteArrayList<>();
        Semaphore window = new Semaphore(16);
        for (Message m : messages) {
            window.acquire();
            p.send(m, new SendCallback() {
                @Override
                public void onSuccess(SendResult r) {
                    done.add(result(r));
                    window.release();
                    all.countDown();
                }

                @Override
                public void onException(Throwable e) {
                    failed.add(e.toString());
                    window.release();
                    all.countDown();
                }
            });
        }
        if (!all.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("asynchronous sends without an answer: " + all.getCount());
        }
        if (!failed.isEmpty()) {
            throw new IllegalStateException("asynchronous sends failed: " + failed);
        }
        results.addAll(done);
    }

    private static JSONObject result(SendResult r) {
        JSONObject o = new JSONObject();
        o.put("status", r.getSendStatus().name());
        o.put("msgId", r.getMsgId());
        o.put("offsetMsgId", r.getOffsetMsgId());
        o.put("broker", r.getMessageQueue().getBrokerName());
        o.put("queueId", r.getMessageQueue().getQueueId());
        o.put("queueOffset", r.getQueueOffset());
        o.put("recallHandle", r.getRecallHandle());
        return o;
    }

    static JSONObject received(MessageExt m) {
        JSONObject o = new JSONObject();
        o.put("topic", m.getTopic());
        o.put("broker", m.getBrokerName());
        o.put("queueId", m.getQueueId());
        o.put("queueOffset", m.getQueueOffset());
        o.put("physicalOffset", m.getCommitLogOffset());
        o.put("msgId", m.getMsgId());
        o.put("body", Base64.getEncoder().encodeToString(m.getBody()));
        o.put("tag", m.getTags());
        o.put("keys", m.getKeys());
        o.put("times", m.getReconsumeTimes());
        o.put("bornTimestamp", m.getBornTimestamp());
        o.put("storeTimestamp", m.getStoreTimestamp());
        JSONObject properties = new JSONObject();
        properties.putAll(m.getProperties());
        o.put("properties", properties);
        return o;
    }

    /** What a push consumer got, and when. */
    private static JSONObject arrived(MessageExt m) {
        JSONObject o = received(m);
        o.put("at", System.currentTimeMillis());
        return o;
    }

    private static final class Push {
        final DefaultMQPushConsumer consumer;
        final List<JSONObject> got = new CopyOnWriteArrayList<>();

        /** Where messages go as well, a line each, so that what a killed JVM received is known; null for nowhere. */
        final PrintStream diary;

        Push(DefaultMQPushConsumer consumer, String diary) throws IOException {
            this.consumer = consumer;
            this.diary = diary == null ? null : new PrintStream(new FileOutputStream(diary), true, "UTF-8");
        }

        void add(JSONObject m) {
            if (diary != null) {
                synchronized (diary) {
                    diary.println(JSON.toJSONString(m));
                }
            }
            got.add(m);
        }

        Object received() {
            return new ArrayList<>(got);
        }

        Object popAssigned() {
            List<String> queues = new ArrayList<>();
            for (MessageQueue q : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getPopProcessQueueTable().keySet()) {
                queues.add(q.getBrokerName() + ":" + q.getQueueId());
            }
            queues.sort(Comparator.naturalOrder());
            return queues;
        }

        Object assigned() {
            List<String> queues = new ArrayList<>();
            for (MessageQueue q : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
                if (!q.getTopic().startsWith("%RETRY%")) {
                    queues.add(q.getBrokerName() + ":" + q.getQueueId());
                }
            }
            queues.sort(Comparator.naturalOrder());
            return queues;
        }
    }

    private static Object push(JSONObject q) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(q.getString("group"));
        c.setNamesrvAddr(q.getString("namesrv"));
        c.setInstanceName(q.getString("id"));
        c.setConsumeFromWhere(ConsumeFromWhere.valueOf(q.getString("from") == null ? "CONSUME_FROM_FIRST_OFFSET" : q.getString("from")));
        c.setConsumeTimestamp(q.getString("timestamp") == null ? "20200101000000" : q.getString("timestamp"));
        if (q.getString("namespace") != null) {
            c.setNamespace(q.getString("namespace"));
        }
        c.setPersistConsumerOffsetInterval(1000);
        quick(c);
        c.setUnitMode(q.getBooleanValue("unit"));
        c.setUseHeartbeatV2(q.getBooleanValue("heartbeatV2"));
        c.setEnableTrace(q.getBooleanValue("trace"));
        if (q.getBooleanValue("broadcast")) {
            c.setMessageModel(MessageModel.BROADCASTING);
        }
        if (q.getBooleanValue("serverRebalance")) {
            c.setClientRebalance(false);
            if (q.containsKey("popInvisible")) {
                c.setPopInvisibleTime(q.getLongValue("popInvisible"));
            }
        }
        if (q.containsKey("max")) {
            c.setMaxReconsumeTimes(q.getIntValue("max"));
        }
        if (q.containsKey("suspend")) {
            c.setSuspendCurrentQueueTimeMillis(q.getLongValue("suspend"));
        }
        String expression = q.getString("expression");
        if (q.getBooleanValue("sql")) {
            c.subscribe(q.getString("topic"), MessageSelector.bySql(expression));
        } else {
            c.subscribe(q.getString("topic"), expression == null ? "*" : expression);
        }
        int failTimes = q.getIntValue("failTimes");
        Push p = new Push(c, q.getString("diary"));
        if (q.getBooleanValue("orderly")) {
            c.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                for (MessageExt m : messages) {
                    p.add(arrived(m));
                    pause(q.getLongValue("slow"));
                }
                return messages.get(0).getReconsumeTimes() < failTimes ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                for (MessageExt m : messages) {
                    p.add(arrived(m));
                    pause(q.getLongValue("slow"));
                }
                if (q.getBooleanValue("hang")) {
                    sleepLong();
                }
                MessageExt only = messages.get(0);
                if (only.getReconsumeTimes() < failTimes) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                if (only.getReconsumeTimes() == 0 && new String(only.getBody(), StandardCharsets.UTF_8).startsWith("fail-once ")) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        c.start();
        PUSHES.put(q.getString("id"), p);
        return null;
    }

    private static void sleepLong() {
        pause(600_000);
    }

    private static void pause(long millis) {
        try {
            if (millis > 0) {
                Thread.sleep(millis);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Everything in a topic, queue by queue, as a pull consumer sees it. */
    private static Object pull(JSONObject q) throws Exception {
        if (q.getBooleanValue("fresh")) {
            DefaultMQPullConsumer c = pullConsumer(q);
            try {
                return pullAll(c, q);
            } finally {
                c.shutdown();
            }
        }
        String key = q.getString("namesrv");
        DefaultMQPullConsumer c = PULLS.get(key);
        if (c == null) {
            c = pullConsumer(q);
            PULLS.put(key, c);
        }
        return pullAll(c, q);
    }

    private static DefaultMQPullConsumer pullConsumer(JSONObject q) throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer("e2e_java_pull");
        c.setNamesrvAddr(q.getString("namesrv"));
        c.setInstanceName("pull" + System.nanoTime());
        c.start();
        return c;
    }

    private static Object pullAll(DefaultMQPullConsumer c, JSONObject q) throws Exception {
        String expression = q.getString("expression");
        Set<MessageQueue> queues = c.fetchSubscribeMessageQueues(q.getString(q.containsKey("light") ? "light" : "topic"));
        if (q.containsKey("light")) { // a light queue has no route: it is on the brokers of the topic whose messages it shows
            Set<MessageQueue> light = new HashSet<>();
            for (MessageQueue mq : queues) {
                light.add(new MessageQueue(q.getString("topic"), mq.getBrokerName(), 0));
            }
            queues = light;
        }
        List<Object> all = new ArrayList<>();
        for (MessageQueue mq : queues) {
            long offset = Math.max(0, c.minOffset(mq)); // Apache says -1 of a batch or light queue that does not exist yet
            long end = c.maxOffset(mq);
            while (offset < end) {
                PullResult r = c.pull(mq, expression == null ? "*" : expression, offset, 32, 10000);
                if (r.getPullStatus() == PullStatus.FOUND) {
                    for (MessageExt m : r.getMsgFoundList()) {
                        all.add(received(m));
                    }
                } else if (r.getNextBeginOffset() <= offset) {
                    throw new IllegalStateException(mq + " at " + offset + ": " + r);
                }
                offset = r.getNextBeginOffset();
            }
        }
        return all;
    }

    /** Names of the brokers in a topic's route; empty when there is none. */
    private static Object route(JSONObject q) throws Exception {
        List<String> names = new ArrayList<>();
        try {
            for (BrokerData b : adminExt(q.getString("namesrv")).examineTopicRouteInfo(q.getString("topic")).getBrokerDatas()) {
                names.add(b.getBrokerName());
            }
        } catch (MQClientException e) {
            if (e.getResponseCode() != ResponseCode.TOPIC_NOT_EXIST) {
                throw e;
            }
        }
        return names;
    }

    private static Object createTopic(JSONObject q) throws Exception {
        DefaultMQAdminExt admin = adminExt(q.getString("namesrv"));
        int queues = q.getIntValue("queues");
        TopicConfig config = new TopicConfig(q.getString("topic"), queues, queues);
        if (q.getJSONObject("attributes") != null) {
            for (String name : q.getJSONObject("attributes").keySet()) {
                config.getAttributes().put("+" + name, q.getJSONObject("attributes").getString(name));
            }
        }
        for (BrokerData b : admin.examineBrokerClusterInfo().getBrokerAddrTable().values()) {
            admin.createAndUpdateTopicConfig(b.selectBrokerAddr(), config);
        }
        return null;
    }

    /** Whether a topic is in order for all brokers. */
    private static Object isOrdered(JSONObject q) throws Exception {
        DefaultMQAdminExt admin = adminExt(q.getString("namesrv"));
        boolean all = true;
        for (BrokerData b : admin.examineBrokerClusterInfo().getBrokerAddrTable().values()) {
            all &= admin.examineTopicConfig(b.selectBrokerAddr(), q.getString("topic")).isOrder();
        }
        return all;
    }

    /** Creates a group on all brokers, or changes it. */
    private static Object createGroup(JSONObject q) throws Exception {
        DefaultMQAdminExt admin = adminExt(q.getString("namesrv"));
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(q.getString("group"));
        config.setConsumeEnable(!q.getBooleanValue("disabled"));
        config.setConsumeBroadcastEnable(!q.getBooleanValue("noBroadcast"));
        for (BrokerData b : admin.examineBrokerClusterInfo().getBrokerAddrTable().values()) {
            admin.createAndUpdateSubscriptionGroupConfig(b.selectBrokerAddr(), config);
        }
        return null;
    }

    private static DefaultMQAdminExt adminExt(String namesrv) throws Exception {
        DefaultMQAdminExt admin = ADMINS.get(namesrv);
        if (admin == null) {
            admin = new DefaultMQAdminExt();
            admin.setNamesrvAddr(namesrv);
            admin.setInstanceName("admin" + System.nanoTime());
            admin.start();
            ADMINS.put(namesrv, admin);
        }
        return admin;
    }

    /** Runs a command without the up to 3 s that its client waits at its end for a thread that looks for events. */
    private static void hurried(Runnable command) throws InterruptedException {
        Thread runner = Thread.currentThread();
        Thread nudge = new Thread(() -> {
            while (!Thread.currentThread().isInterrupted()) {
                for (StackTraceElement e : runner.getStackTrace()) {
                    if (e.getMethodName().equals("shutdown") && e.getClassName().endsWith(".NettyRemotingClient")) {
                        Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().equals("NettyEventExecutor")).forEach(Thread::interrupt);
                    }
                }
                java.util.concurrent.locks.LockSupport.parkNanos(10_000_000);
            }
        });
        nudge.setDaemon(true);
        nudge.start();
        try {
            command.run();
        } finally {
            nudge.interrupt();
            nudge.join();
        }
    }

    /** One command of mqadmin, with what it prints. */
    private static Object admin(JSONObject q) throws Exception {
        String[] args = q.getJSONArray("args").toArray(new String[0]);
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        PrintStream before = System.out;
        PrintStream beforeErr = System.err;
        PrintStream capture = new PrintStream(text, true, "UTF-8");
        System.setOut(capture);
        System.setErr(capture);
        try {
            // A command keeps its client, which it has shut down, and the list keeps the commands.
            java.lang.reflect.Field commands = MQAdminStartup.class.getDeclaredField("SUB_COMMANDS");
            commands.setAccessible(true);
            ((List<?>) commands.get(null)).clear();
            hurried(() -> MQAdminStartup.main0(args, null));
        } finally {
            System.setOut(before);
            System.setErr(beforeErr);
            capture.flush();
        }
        return text.toString("UTF-8");
    }
}
