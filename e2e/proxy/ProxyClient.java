import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** The gRPC client for Java in front of a proxy: sends, pops, changes invisible times, fails into the dead letters. */
public final class ProxyClient {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static ClientConfiguration config;

    private ProxyClient() {
    }

    public static void main(String[] args) throws Exception {
        config = ClientConfiguration.newBuilder().setEndpoints(args[0]).enableSsl(false).setRequestTimeout(Duration.ofSeconds(30)).build();
        String topic = args[1];
        String group = args[2];
        int n = Integer.parseInt(args[3]);
        send(topic, n, "m");
        simple(topic, group, n);
        if (args.length > 4) {
            send(topic, 1, "dead");
            push(topic, args[4]);
        }
        System.out.println("DONE");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void send(String topic, int n, String text) throws Exception {
        try (Producer p = PROVIDER.newProducerBuilder().setClientConfiguration(config).setTopics(topic).build()) {
            for (int i = 0; i < n; i++) {
                Message m = PROVIDER.newMessageBuilder().setTopic(topic).setKeys("k" + i).setTag("t")
                    .setBody((text + i).getBytes(StandardCharsets.UTF_8)).build();
                p.send(m);
            }
        }
    }

    private static String body(MessageView m) {
        ByteBuffer b = m.getBody();
        byte[] out = new byte[b.remaining()];
        b.duplicate().get(out);
        return new String(out, StandardCharsets.UTF_8);
    }

    private static void simple(String topic, String group, int n) throws Exception {
        TreeMap<String, Integer> attempts = new TreeMap<>();
        List<String> twice = new ArrayList<>();
        try (SimpleConsumer c = PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(config).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5)).setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL)).build()) {
            long end = System.currentTimeMillis() + 90_000;
            while (System.currentTimeMillis() < end && (attempts.size() < n || attempts.getOrDefault("m0", 0) < 2 || attempts.getOrDefault("m1", 0) < 2)) {
                for (MessageView m : c.receive(16, Duration.ofSeconds(20))) {
                    String text = body(m);
                    if (attempts.containsKey(text) && !text.equals("m0") && !text.equals("m1")) {
                        twice.add(text);
                    }
                    attempts.put(text, m.getDeliveryAttempt());
                    if (m.getDeliveryAttempt() == 1 && text.equals("m0")) {
                        continue; // its time runs out
                    }
                    if (m.getDeliveryAttempt() == 1 && text.equals("m1")) {
                        c.changeInvisibleDuration(m, Duration.ofSeconds(10));
                        continue;
                    }
                    c.ack(m);
                }
            }
        }
        System.out.println("SIMPLE " + attempts + " twice " + twice);
    }

    private static void push(String topic, String group) throws Exception {
        List<Integer> seen = Collections.synchronizedList(new ArrayList<>());
        try (PushConsumer c = PROVIDER.newPushConsumerBuilder().setClientConfiguration(config).setConsumerGroup(group)
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL)).setMessageListener(m -> {
                if (!body(m).startsWith("dead")) {
                    return ConsumeResult.SUCCESS;
                }
                seen.add(m.getDeliveryAttempt());
                return ConsumeResult.FAILURE;
            }).build()) {
            long end = System.currentTimeMillis() + 60_000;
            while (System.currentTimeMillis() < end && seen.size() < 2) {
                Thread.sleep(100);
            }
            Thread.sleep(5000); // the dead letter is sent after the last attempt
        }
        System.out.println("PUSH " + seen);
    }
}
