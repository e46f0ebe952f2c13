import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** The gRPC client for Java and messages in order: message groups of a FIFO topic, and groups that are to read in order. */
public final class FifoClient {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static ClientConfiguration config;

    private FifoClient() {
    }

    public static void main(String[] args) throws Exception {
        config = ClientConfiguration.newBuilder().setEndpoints(args[0]).enableSsl(false).setRequestTimeout(Duration.ofSeconds(30)).build();
        String topic = args[1];
        int n = Integer.parseInt(args[4]);
        try (Producer p = PROVIDER.newProducerBuilder().setClientConfiguration(config).setTopics(topic).build()) {
            for (int i = 0; i < n; i++) {
                for (String group : new String[] {"a", "b", "c"}) {
                    byte[] body = String.format("%s%02d", group, i).getBytes(StandardCharsets.UTF_8);
                    p.send(PROVIDER.newMessageBuilder().setTopic(topic).setMessageGroup(group).setBody(body).build());
                }
            }
        }
        push(topic, args[2], n);
        simple(topic, args[3], n);
        System.out.println("DONE");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String body(MessageView m) {
        ByteBuffer b = m.getBody();
        byte[] out = new byte[b.remaining()];
        b.duplicate().get(out);
        return new String(out, StandardCharsets.UTF_8);
    }

    private static void add(Map<String, List<String>> seen, String text) {
        synchronized (seen) {
            seen.computeIfAbsent(text.substring(0, 1), k -> new ArrayList<>()).add(text.substring(1));
        }
    }

    private static int size(Map<String, List<String>> seen) {
        synchronized (seen) {
            return seen.values().stream().mapToInt(List::size).sum();
        }
    }

    /** Reads everything, fails b01 once; prints what came, in its order. */
    private static void push(String topic, String group, int n) throws Exception {
        Map<String, List<String>> seen = new TreeMap<>();
        try (PushConsumer c = PROVIDER.newPushConsumerBuilder().setClientConfiguration(config).setConsumerGroup(group)
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL)).setMessageListener(m -> {
                String text = body(m);
                boolean first;
                synchronized (seen) {
                    first = !seen.getOrDefault("b", Collections.emptyList()).contains("01");
                }
                add(seen, text);
                return text.equals("b01") && first ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            }).build()) {
            long end = System.currentTimeMillis() + 90_000;
            while (System.currentTimeMillis() < end && size(seen) < 3 * n + 1) {
                Thread.sleep(100);
            }
            Thread.sleep(500);
        }
        synchronized (seen) {
            System.out.println("PUSH " + seen);
        }
    }

    /** Reads with a consumer that acknowledges message by message, and prints what came, in its order. */
    private static void simple(String topic, String group, int n) throws Exception {
        Map<String, List<String>> seen = new TreeMap<>();
        try (SimpleConsumer c = PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(config).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(2)).setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL)).build()) {
            long end = System.currentTimeMillis() + 90_000;
            while (System.currentTimeMillis() < end && size(seen) < 3 * n) {
                for (MessageView m : c.receive(4, Duration.ofSeconds(20))) {
                    add(seen, body(m));
                    c.ack(m);
                }
            }
        }
        System.out.println("SIMPLE " + seen);
    }
}
