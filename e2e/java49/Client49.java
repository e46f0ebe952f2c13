import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
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
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The Java client 4.9 behind the line protocol of java/Driver.java, as far as it is needed. */
public final class Client49 {
    private static final PrintStream OUT = System.out;
    private static final Map<String, DefaultMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    private static final Map<String, DefaultMQPushConsumer> PUSHES = new ConcurrentHashMap<>();
    private static final Map<String, List<JSONObject>> GOT = new ConcurrentHashMap<>();
    private static final List<String> CHECKED = new CopyOnWriteArrayList<>();

    private Client49() {
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject answer = new JSONObject();
            try {
                answer.put("result", run(JSON.parseObject(line)));
            } catch (Throwable e) {
                answer.put("error", e.toString());
            }
            synchronized (OUT) {
                OUT.println("@@" + JSON.toJSONString(answer, SerializerFeature.WriteMapNullValue));
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
                return new ArrayList<>(GOT.get(q.getString("id")));
            case "stop":
                PUSHES.remove(q.getString("id")).shutdown();
                return null;
            case "pull":
                return pull(q);
            case "transactions":
                return transactions(q);
            case "transactionsChecked":
                return CHECKED;
            default:
                throw new IllegalArgumentException("unknown command " + q.getString("cmd"));
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
        return msg;
    }

    private static Object send(JSONObject q) throws Exception {
        String namesrv = q.getString("namesrv");
        DefaultMQProducer p = PRODUCERS.get(namesrv);
        if (p == null) {
            p = new DefaultMQProducer("e2e_java49_producer");
            p.setNamesrvAddr(namesrv);
            p.setSendMsgTimeout(10000);
            p.start();
            PRODUCERS.put(namesrv, p);
        }
        List<Message> messages = new ArrayList<>();
        JSONArray in = q.getJSONArray("messages");
        for (int i = 0; i < in.size(); i++) {
            messages.add(message(q.getString("topic"), in.getJSONObject(i)));
        }
        List<Object> results = new CopyOnWriteArrayList<>();
        switch (q.getString("mode")) {
            case "batch":
                results.add(result(p.send(messages)));
                break;
            case "oneway":
                for (Message m : messages) {
                    p.sendOneway(m);
                }
                break;
            case "shard":
                for (Message m : messages) {
                    results.add(result(p.send(m, new SelectMessageQueueByHash(), q.getString("shard"))));
                }
                break;
            case "async":
                sendAsync(p, messages, results);
                break;
            default:
                for (Message m : messages) {
                    results.add(result(p.send(m)));
                }
        }
        return results;
    }

    private static void sendAsync(DefaultMQProducer p, List<Message> messages, List<Object> results) throws Exception {
        CountDownLatch all = new CountDownLatch(messages.size());
        for (Message m : messages) {
            p.send(m, new SendCallback() {
                @Override
                public void onSuccess(SendResult r) {
                    results.add(result(r));
                    all.countDown();
                }

                @Override
                public void onException(Throwable e) {
                    e.printStackTrace();
                }
            });
        }
        if (!all.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("asynchronous sends that did not succeed: " + all.getCount());
        }
    }

    private static JSONObject result(SendResult r) {
        JSONObject o = new JSONObject();
        o.put("status", r.getSendStatus().name());
        o.put("msgId", r.getMsgId());
        o.put("offsetMsgId", r.getOffsetMsgId());
        o.put("broker", r.getMessageQueue().getBrokerName());
        o.put("queueId", r.getMessageQueue().getQueueId());
        o.put("queueOffset", r.getQueueOffset());
        return o;
    }

    private static JSONObject received(MessageExt m) {
        JSONObject o = new JSONObject();
        o.put("topic", m.getTopic());
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
        o.put("properties", new JSONObject(new java.util.HashMap<String, Object>(m.getProperties())));
        return o;
    }

    /** What a push consumer got, and when. */
    private static JSONObject arrived(MessageExt m) {
        JSONObject o = received(m);
        o.put("at", System.currentTimeMillis());
        return o;
    }

    private static Object push(JSONObject q) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(q.getString("group"));
        c.setNamesrvAddr(q.getString("namesrv"));
        c.setInstanceName(q.getString("id"));
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPersistConsumerOffsetInterval(1000);
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
        List<JSONObject> got = new CopyOnWriteArrayList<>();
        GOT.put(q.getString("id"), got);
        if (q.getBooleanValue("orderly")) {
            c.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(m -> got.add(arrived(m)));
                return messages.get(0).getReconsumeTimes() < failTimes ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(m -> got.add(arrived(m)));
                return messages.get(0).getReconsumeTimes() < failTimes ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        c.start();
        PUSHES.put(q.getString("id"), c);
        return null;
    }

    private static Object pull(JSONObject q) throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer("e2e_java49_pull");
        c.setNamesrvAddr(q.getString("namesrv"));
        c.setInstanceName("pull" + System.nanoTime());
        c.start();
        List<Object> all = new ArrayList<>();
        try {
            for (MessageQueue mq : c.fetchSubscribeMessageQueues(q.getString("topic"))) {
                long offset = c.minOffset(mq);
                long end = c.maxOffset(mq);
                while (offset < end) {
                    PullResult r = c.pull(mq, "*", offset, 32, 10000);
                    if (r.getPullStatus() == PullStatus.FOUND) {
                        r.getMsgFoundList().forEach(m -> all.add(received(m)));
                    } else if (r.getNextBeginOffset() <= offset) {
                        throw new IllegalStateException(mq + " at " + offset + ": " + r);
                    }
                    offset = r.getNextBeginOffset();
                }
            }
        } finally {
            c.shutdown();
        }
        return all;
    }

    private static LocalTransactionState state(byte[] body, int part) {
        switch (new String(body, StandardCharsets.UTF_8).split(" ")[0].split("/")[part]) {
            case "c":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "r":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            default:
                return LocalTransactionState.UNKNOW;
        }
    }

    private static Object transactions(JSONObject q) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer(q.getString("group"));
        p.setNamesrvAddr(q.getString("namesrv"));
        p.setInstanceName(q.getString("group"));
        p.setSendMsgTimeout(10000);
        p.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                return state(m.getBody(), 0);
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                CHECKED.add(new String(m.getBody(), StandardCharsets.UTF_8) + " " + m.getTopic());
                return state(m.getBody(), 1);
            }
        });
        p.start(); // lives as long as this process: it has to answer
        List<Object> out = new ArrayList<>();
        JSONArray in = q.getJSONArray("messages");
        for (int i = 0; i < in.size(); i++) {
            Message m = new Message(q.getString("topic"), Base64.getDecoder().decode(in.getJSONObject(i).getString("body")));
            m.setKeys("tx" + i);
            out.add(p.sendMessageInTransaction(m, null).getTransactionId());
        }
        return out;
    }
}
