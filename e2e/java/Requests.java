import com.alibaba.fastjson2.JSONObject;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Request and reply of the driver: a replier answers each request with "re: " and its body. */
final class Requests {
    private static final Map<String, DefaultMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    private static final Map<String, DefaultMQPushConsumer> REPLIERS = new ConcurrentHashMap<>();

    private Requests() {
    }

    private static DefaultMQProducer producer(String namesrv, String group) throws Exception {
        DefaultMQProducer p = PRODUCERS.get(namesrv + group);
        if (p == null) {
            p = new DefaultMQProducer(group);
            p.setNamesrvAddr(namesrv);
            p.setInstanceName("r" + Integer.toHexString((namesrv + group).hashCode()));
            p.setSendMsgTimeout(10000);
            p.start();
            PRODUCERS.put(namesrv + group, p);
        }
        return p;
    }

    /** Starts a replier of a topic. */
    static Object reply(JSONObject q) throws Exception {
        DefaultMQProducer p = producer(q.getString("namesrv"), "e2e_java_replier");
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(q.getString("group"));
        c.setNamesrvAddr(q.getString("namesrv"));
        c.setInstanceName(q.getString("group"));
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(q.getString("topic"), "*");
        c.registerMessageListener(new MessageListenerConcurrently() {
            @Override
            public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> ms, org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext ctx) {
                for (MessageExt m : ms) {
                    try {
                        p.send(MessageUtil.createReplyMessage(m, ("re: " + new String(m.getBody())).getBytes()), 10000);
                    } catch (Exception e) {
                        e.printStackTrace();
                        return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                    }
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
        });
        c.start();
        REPLIERS.put(q.getString("group"), c);
        return null;
    }

    /** Sends one request and returns the body of its reply. */
    static Object request(JSONObject q) throws Exception {
        DefaultMQProducer p = producer(q.getString("namesrv"), "e2e_java_requester");
        return new String(p.request(new Message(q.getString("topic"), q.getString("body").getBytes()), 20000).getBody());
    }

    /** Ends a replier. */
    static Object stop(JSONObject q) {
        DefaultMQPushConsumer c = REPLIERS.remove(q.getString("group"));
        if (c != null) {
            c.shutdown();
        }
        return null;
    }
}
