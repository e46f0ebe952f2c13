// The gRPC client for Node in front of a proxy: sends, pops, changes an invisible time, acknowledges.
'use strict';
const { Producer, SimpleConsumer } = require(process.argv[2] + '/node_modules/rocketmq-client-nodejs');
const [, , , endpoints, topic, consumerGroup, count] = process.argv;

async function main() {
  const n = Number(count);
  const producer = new Producer({ endpoints, logger: console, requestTimeout: 30000 });
  await producer.startup();
  for (let i = 0; i < n; i++) {
    await producer.send({ topic, tag: 't', keys: ['k' + i], body: Buffer.from('m' + i) });
  }
  const consumer = new SimpleConsumer({
    endpoints, consumerGroup, subscriptions: new Map([[topic, '*']]), awaitDuration: 5000, requestTimeout: 30000,
  });
  await consumer.startup();
  const attempts = {};
  const twice = [];
  const end = Date.now() + 90000;
  while (Date.now() < end && (Object.keys(attempts).length < n || attempts.m0 < 2)) {
    for (const m of await consumer.receive(16, 20000)) {
      const text = m.body.toString();
      if (text in attempts && text !== 'm0') twice.push(text);
      attempts[text] = m.deliveryAttempt;
      if (text === 'm0' && m.deliveryAttempt === 1) {
        await consumer.changeInvisibleDuration(m, 10000);
        continue;
      }
      await consumer.ack(m);
    }
  }
  console.log('NODE ' + JSON.stringify({ n: Object.keys(attempts).length, m0: attempts.m0, twice }));
  process.exit(0);
}

main().catch(e => {
  console.log('FAILED ' + e.stack);
  process.exit(1);
});
