import com.alibaba.fastjson2.JSONObject;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.impl.consumer.AssignedMessageQueue;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Lite pull consumers of the driver: members of a group that fetch messages themselves. */
final class LitePulls {
    private static final Map<String, DefaultLitePullConsumer> ALL = new ConcurrentHashMap<>();

    private LitePulls() {
    }

    static Object start(JSONObject q) throws Exception {
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(q.getString("group"));
        c.setNamesrvAddr(q.getString("namesrv"));
        c.setInstanceName(q.getString("id"));
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setAutoCommitIntervalMillis(1000);
        c.subscribe(q.getString("topic"), "*");
        c.start();
        ALL.put(q.getString("id"), c);
        return null;
    }

    static Object poll(JSONObject q) {
        List<Object> got = new ArrayList<>();
        for (MessageExt m : ALL.get(q.getString("id")).poll(1000)) {
            got.add(Driver.received(m));
        }
        return got;
    }

    /** How many messages the client has got that nobody has polled. */
    static Object held(JSONObject q) throws Exception {
        Field field = DefaultLitePullConsumer.class.getDeclaredField("defaultLitePullConsumerImpl");
        field.setAccessible(true);
        Object impl = field.get(ALL.get(q.getString("id")));
        field = impl.getClass().getDeclaredField("assignedMessageQueue");
        field.setAccessible(true);
        AssignedMessageQueue assigned = (AssignedMessageQueue) field.get(impl);
        long n = 0;
        for (MessageQueue mq : assigned.getAssignedMessageQueues()) {
            n += assigned.getProcessQueue(mq).getMsgCount().get();
        }
        return n;
    }

    static Object stop(JSONObject q) {
        ALL.remove(q.getString("id")).shutdown();
        return null;
    }
}
