import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Publishes gauges as MBeans for a parent process that tells their names and values on standard input.
 *
 * <p>The input is a sequence of commands, big-endian, each beginning with one byte:
 *
 * <pre>
 *   R  int id, long value, unsigned short n, n bytes of UTF-8   register a bean under this object name
 *   U  int id                                                   unregister it; the id may be used again
 *   S  int n, n ints, n longs                                   set the values of these ids
 *   E  int serial                                               end of a batch
 * </pre>
 *
 * <p>Said on standard output, a line each: "ready" once JMX serves, "refused ID REASON" for a name that JMX does not
 * take, "applied SERIAL BEANS" after a batch. The end of the input is the end of the parent, and so of this process.
 */
public final class BrimlineJmx {
    private static final int BUFFER = 1 << 16;

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final DataInputStream in;
    private final PrintStream out;
    private Gauge[] gauges = new Gauge[1024];
    private int beans;

    private BrimlineJmx(DataInputStream in, PrintStream out) {
        this.in = in;
        this.out = out;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try {
            new BrimlineJmx(new DataInputStream(new BufferedInputStream(System.in, BUFFER)), out).serve();
        } catch (EOFException parentIsGone) {
            // A clean exit would wait for whatever a JMX client is doing; nothing here needs saving.
            Runtime.getRuntime().halt(0);
        }
    }

    private void serve() throws IOException {
        hideSecrets();
        // The agent that listens was started before main: a port that is taken ends the JVM earlier.
        out.println("ready");
        while (true) {
            int command = in.read();
            switch (command) {
                case 'R':
                    register(in.readInt(), in.readLong());
                    break;
                case 'U':
                    unregister(in.readInt());
                    break;
                case 'S':
                    set();
                    break;
                case 'E':
                    out.println("applied " + in.readInt() + " " + beans);
                    break;
                case -1:
                    throw new EOFException();
                default:
                    throw new IOException("no such command: " + command);
            }
        }
    }

    /** Who may read every bean would read the system properties there, the key store's password among them. */
    private void hideSecrets() throws IOException {
        try {
            server.unregisterMBean(new ObjectName(ManagementFactory.RUNTIME_MXBEAN_NAME));
        } catch (JMException impossible) {
            throw new IOException(impossible);
        }
    }

    private void register(int id, long value) throws IOException {
        byte[] name = new byte[in.readUnsignedShort()];
        in.readFully(name);
        try {
            Gauge gauge = new Gauge(new ObjectName(new String(name, StandardCharsets.UTF_8)), value);
            server.registerMBean(gauge, gauge.name);
            if (id >= gauges.length) {
                gauges = Arrays.copyOf(gauges, Math.max(id + 1, gauges.length * 2));
            }
            gauges[id] = gauge;
            beans++;
        } catch (JMException refused) {
            out.println("refused " + id + " " + refused);
        }
    }

    private void unregister(int id) {
        Gauge gauge = known(id);
        if (gauge == null) {
            return;
        }
        gauges[id] = null;
        beans--;
        try {
            server.unregisterMBean(gauge.name);
        } catch (JMException alreadyGone) {
            out.println("refused " + id + " " + alreadyGone);
        }
    }

    private void set() throws IOException {
        int[] ids = new int[in.readInt()];
        for (int i = 0; i < ids.length; i++) {
            ids[i] = in.readInt();
        }
        for (int id : ids) {
            long value = in.readLong();
            Gauge gauge = known(id);
            if (gauge != null) {
                gauge.value = value;
            }
        }
    }

    /** A bean whose name was refused has no gauge. */
    private Gauge known(int id) {
        return id < gauges.length ? gauges[id] : null;
    }

    /** What Kafka's own gauges look like: one attribute, declared as Object, that holds an Integer. */
    private static final class Gauge implements DynamicMBean {
        private static final String ATTRIBUTE = "Value";
        private static final MBeanInfo INFO = new MBeanInfo(
                BrimlineJmx.class.getName(),
                "A gauge published by Brimline",
                new MBeanAttributeInfo[] {
                    new MBeanAttributeInfo(ATTRIBUTE, Object.class.getName(), ATTRIBUTE, true, false, false)
                },
                null,
                null,
                null);

        private final ObjectName name;
        private volatile long value;

        private Gauge(ObjectName name, long value) {
            this.name = name;
            this.value = value;
        }

        @Override
        public Object getAttribute(String attribute) throws AttributeNotFoundException {
            if (!ATTRIBUTE.equals(attribute)) {
                throw new AttributeNotFoundException(attribute);
            }
            long now = value;
            if (now == (int) now) {
                return (int) now;
            }
            return now;
        }

        @Override
        public AttributeList getAttributes(String[] attributes) {
            AttributeList found = new AttributeList();
            for (String attribute : attributes) {
                if (ATTRIBUTE.equals(attribute)) {
                    try {
                        found.add(new Attribute(attribute, getAttribute(attribute)));
                    } catch (AttributeNotFoundException impossible) {
                        throw new AssertionError(impossible);
                    }
                }
            }
            return found;
        }

        @Override
        public void setAttribute(Attribute attribute) throws AttributeNotFoundException {
            throw new AttributeNotFoundException(attribute.getName() + " cannot be set");
        }

        @Override
        public AttributeList setAttributes(AttributeList attributes) {
            return new AttributeList();
        }

        @Override
        public Object invoke(String action, Object[] parameters, String[] signature) {
            throw new UnsupportedOperationException(action);
        }

        @Override
        public MBeanInfo getMBeanInfo() {
            return INFO;
        }
    }
}
