import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own Java clients for tests and torture, with their defaults, driven by options and reporting in JSON lines: the same
 * options and the same lines as the Python clients beside it (child.py explains both).
 *
 * <p>Modes: {@code produce} (with {@code --transactional ID}: in transactions), {@code consume}, a consumer group, and
 * {@code describe}, an admin that describes the log dirs of {@code --broker}.
 */
public final class KafkaTestClient {
    private static final Map<String, List<String>> OPTIONS = new java.util.HashMap<>();
    private static final AtomicInteger ACKED = new AtomicInteger();
    private static final AtomicInteger FAILED = new AtomicInteger();
    private static volatile boolean stopping;

    private KafkaTestClient() {}

    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i += 2) {
            OPTIONS.computeIfAbsent(arguments[i], name -> new ArrayList<>()).add(arguments[i + 1]);
        }
        stopWhenAsked();
        if (arguments[0].equals("consume")) {
            consume();
        } else if (arguments[0].equals("describe")) {
            describe();
        } else {
            produce();
        }
        Runtime.getRuntime().halt(0);
    }

    /** SIGTERM, or the end of our input, which comes when whoever started us is gone. */
    private static void stopWhenAsked() {
        Thread main = Thread.currentThread();
        Thread onSignal = new Thread(() -> {
            stopping = true;
            try {
                main.join();
            } catch (InterruptedException ignored) {
                Thread.currentThread().interrupt();
            }
        });
        Runtime.getRuntime().addShutdownHook(onSignal);
        Thread onEndOfInput = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Nobody says anything; only the end matters.
                }
            } catch (IOException ended) {
                // As good as an end.
            }
            stopping = true;
        });
        onEndOfInput.setDaemon(true);
        onEndOfInput.start();
    }

    private static void produce() throws InterruptedException {
        Properties properties = properties();
        properties.putIfAbsent("client.id", option("--name"));
        properties.put("key.serializer", StringSerializer.class.getName());
        properties.put("value.serializer", StringSerializer.class.getName());
        String transactionalId = option("--transactional");
        if (transactionalId != null) {
            properties.put("transactional.id", transactionalId);
        }
        int sent;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            sent = transactionalId == null ? stream(producer) : transactions(producer);
        }
        say("{\"done\": {\"sent\": %d, \"acked\": %d, \"failed\": %d}}", sent, ACKED.get(), FAILED.get());
    }

    private static int stream(KafkaProducer<String, String> producer) throws InterruptedException {
        Pace pace = new Pace();
        while (pace.goesOn()) {
            send(producer, pace.next());
        }
        return pace.sent;
    }

    /** Every {@code --per-transaction} records are one transaction; the records of an aborted one count as failed. */
    private static int transactions(KafkaProducer<String, String> producer) throws InterruptedException {
        int size = Integer.parseInt(option("--per-transaction"));
        Pace pace = new Pace();
        producer.initTransactions();
        while (pace.goesOn()) {
            int first = pace.sent;
            try {
                producer.beginTransaction();
                for (int i = 0; i < size; i++) {
                    send(producer, pace.next());
                }
                producer.commitTransaction();
                say("{\"committed\": [%d, %d]}", first, pace.sent - 1);
            } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException fatal) {
                say("{\"fatal\": [%d, %d], %s}", first, pace.sent - 1, described(fatal));
                return pace.sent;
            } catch (KafkaException abortable) {
                producer.abortTransaction();
                say("{\"aborted\": [%d, %d], %s}", first, pace.sent - 1, described(abortable));
            }
        }
        return pace.sent;
    }

    private static void send(KafkaProducer<String, String> producer, int number) {
        int partition = Pace.partitionOf(number);
        String value = padded(option("--name") + "-" + partition + "-" + number);
        if ("yes".equals(option("--tell-sends"))) {
            long now = System.currentTimeMillis();
            say("{\"sent\": %d, \"at\": %d.%03d}", number, now / 1000, now % 1000);
        }
        try {
            producer.send(
                    new ProducerRecord<>(option("--topic"), partition, null, value),
                    (stored, error) -> report(number, stored, error));
        } catch (KafkaException refused) {
            report(number, null, refused);
            if (option("--transactional") != null) {
                throw refused;
            }
        }
    }

    private static void report(int number, RecordMetadata stored, Exception error) {
        if (error == null) {
            ACKED.incrementAndGet();
            say("{\"acked\": %d, \"partition\": %d, \"offset\": %d}", number, stored.partition(), stored.offset());
        } else {
            FAILED.incrementAndGet();
            say("{\"failed\": %d, %s}", number, described(error));
        }
    }

    /**
     * A group of {@code --members} consumers, each in a thread of its own, until {@code --count} records came. With
     * {@code --commit sync} each commits after every poll with records, and tells of a commit that fails.
     */
    private static void consume() throws InterruptedException {
        int members = Integer.parseInt(option("--members"));
        AtomicInteger consumed = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int member = 0; member < members; member++) {
            int number = member;
            Thread thread = new Thread(() -> consumeAs(number, consumed));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        say("{\"done\": {\"consumed\": %d}}", consumed.get());
    }

    private static void consumeAs(int member, AtomicInteger consumed) {
        Properties properties = properties();
        properties.putIfAbsent("client.id", option("--name") + "-" + member);
        properties.putIfAbsent("auto.offset.reset", "earliest");
        properties.put("group.id", option("--group"));
        properties.put("key.deserializer", StringDeserializer.class.getName());
        properties.put("value.deserializer", StringDeserializer.class.getName());
        int wanted = option("--count") == null ? Integer.MAX_VALUE : Integer.parseInt(option("--count"));
        boolean commits = "sync".equals(option("--commit"));
        if (commits) {
            properties.put("enable.auto.commit", "false");
        }
        Set<Integer> assigned = new HashSet<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
            consumer.subscribe(List.of(option("--topic")));
            while (!stopping && consumed.get() < wanted) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<String, String> record : records) {
                    consumed.incrementAndGet();
                    say("{\"consumed\": %s, \"partition\": %d, \"offset\": %d, \"member\": %d}",
                            quoted(record.value().stripTrailing()), record.partition(), record.offset(), member);
                }
                if (commits && !records.isEmpty()) {
                    commit(consumer, member);
                }
                Set<Integer> now = consumer.assignment().stream().map(p -> p.partition()).collect(Collectors.toSet());
                if (!now.equals(assigned)) {
                    assigned = now;
                    say("{\"assigned\": %s, \"member\": %d}", now.stream().sorted().toList(), member);
                }
            }
        }
    }

    private static void commit(KafkaConsumer<String, String> consumer, int member) {
        long began = System.nanoTime();
        try {
            consumer.commitSync();
        } catch (KafkaException failed) {
            long took = (System.nanoTime() - began) / 1_000_000;
            say("{\"uncommitted\": %d, \"milliseconds\": %d, %s}", member, took, described(failed));
        }
    }

    private static void describe() throws Exception {
        int broker = Integer.parseInt(option("--broker"));
        try (Admin admin = Admin.create(properties())) {
            Map<String, LogDirDescription> described =
                    admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker);
            for (Map.Entry<String, LogDirDescription> entry : described.entrySet()) {
                LogDirDescription logDir = entry.getValue();
                String sizes = logDir.replicaInfos().entrySet().stream()
                        .map(replica -> quoted(replica.getKey().toString()) + ": " + replica.getValue().size())
                        .collect(Collectors.joining(", "));
                say("{\"logDir\": %s, \"totalBytes\": %s, \"usableBytes\": %s, \"isCordoned\": %s, \"sizes\": {%s}}",
                        quoted(entry.getKey()), orNull(logDir.totalBytes()), orNull(logDir.usableBytes()),
                        isCordoned(logDir), sizes);
            }
        }
    }

    private static String orNull(OptionalLong value) {
        return value.isPresent() ? Long.toString(value.getAsLong()) : "null";
    }

    /** Clients know it since 4.3, and this file is compiled for older ones too. */
    private static String isCordoned(LogDirDescription logDir) throws ReflectiveOperationException {
        try {
            return LogDirDescription.class.getMethod("isCordoned").invoke(logDir).toString();
        } catch (NoSuchMethodException tooOld) {
            return "null";
        }
    }

    private static Properties properties() {
        Properties properties = new Properties();
        for (String property : OPTIONS.getOrDefault("--property", List.of())) {
            int equals = property.indexOf('=');
            properties.put(property.substring(0, equals), property.substring(equals + 1));
        }
        properties.put("bootstrap.servers", option("--bootstrap-servers"));
        return properties;
    }

    private static String option(String name) {
        return OPTIONS.containsKey(name) ? OPTIONS.get(name).get(0) : null;
    }

    private static String padded(String value) {
        int size = option("--value-bytes") == null ? 0 : Integer.parseInt(option("--value-bytes"));
        return value + " ".repeat(Math.max(0, size - value.length()));
    }

    private static void say(String format, Object... values) {
        synchronized (System.out) {
            System.out.println(String.format(format, values));
            System.out.flush();
        }
    }

    private static String described(Throwable error) {
        String text = error.getMessage() == null ? "" : error.getMessage();
        return "\"error\": " + quoted(error.getClass().getSimpleName()) + ", \"text\": " + quoted(text);
    }

    private static String quoted(String text) {
        String escaped = text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\t", "\\t");
        return '"' + escaped + '"';
    }

    /** Numbers from 0, at a rate, over the partitions in turn, until enough or told to stop. */
    private static final class Pace {
        private static final int[] PARTITIONS =
                Arrays.stream(option("--partitions").split(",")).mapToInt(Integer::parseInt).toArray();
        private final double rate = Double.parseDouble(option("--rate"));
        private final int count = option("--count") == null ? Integer.MAX_VALUE : Integer.parseInt(option("--count"));
        private final long start = System.nanoTime();
        private int sent;

        private static int partitionOf(int number) {
            return PARTITIONS[number % PARTITIONS.length];
        }

        private boolean goesOn() {
            return !stopping && sent < count;
        }

        private int next() throws InterruptedException {
            long due = start + (long) (sent / rate * 1e9);
            long early = (due - System.nanoTime()) / 1_000_000;
            if (early > 0) {
                Thread.sleep(early);
            }
            return sent++;
        }
    }
}
