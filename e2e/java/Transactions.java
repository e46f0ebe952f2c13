import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Transactional producers of the driver. What a transaction does stands in its body: "now/check", of c, r and u. */
final class Transactions {
    private static final Map<String, TransactionMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    private static final List<Object> CHECKED = new CopyOnWriteArrayList<>();

    private Transactions() {
    }

    private static LocalTransactionState state(byte[] body, int part) {
        switch (new String(body).split(" ")[0].split("/")[part]) {
            case "c":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "r":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            default:
                return LocalTransactionState.UNKNOW;
        }
    }

    private static TransactionMQProducer producer(String namesrv, String group) throws Exception {
        TransactionMQProducer p = PRODUCERS.get(namesrv + group);
        if (p == null) {
            p = new TransactionMQProducer(group);
            p.setNamesrvAddr(namesrv);
            p.setInstanceName("t" + Integer.toHexString((namesrv + group).hashCode()));
            p.setSendMsgTimeout(10000);
            p.setTransactionListener(new TransactionListener() {
                @Override
                public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                    return state(m.getBody(), 0);
                }

                @Override
                public LocalTransactionState checkLocalTransaction(MessageExt m) {
                    CHECKED.add(new String(m.getBody()) + " " + m.getTopic());
                    return state(m.getBody(), 1);
                }
            });
            p.start();
            PRODUCERS.put(namesrv + group, p);
        }
        return p;
    }

    /** Sends messages in transactions of a group. Without messages it only brings the producer up. */
    static Object send(JSONObject q) throws Exception {
        TransactionMQProducer p = producer(q.getString("namesrv"), q.getString("group"));
        List<Object> out = new ArrayList<>();
        JSONArray in = q.getJSONArray("messages");
        for (int i = 0; in != null && i < in.size(); i++) {
            Message m = new Message(q.getString("topic"), Base64.getDecoder().decode(in.getJSONObject(i).getString("body")));
            m.setKeys("tx" + i);
            out.add(p.sendMessageInTransaction(m, null).getTransactionId());
        }
        return out;
    }

    /** What the producers were asked so far. */
    static Object checked(JSONObject q) {
        return CHECKED;
    }

    /** Ends a producer. */
    static Object stop(JSONObject q) {
        TransactionMQProducer p = PRODUCERS.remove(q.getString("namesrv") + q.getString("group"));
        if (p != null) {
            p.shutdown();
        }
        return null;
    }
}
