import java.util.LinkedHashMap;
import java.util.Map;
import javax.management.Attribute;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Another user of the machine with the JDK's own JMX client: says what it may do, a line each.
 *
 * <p>Arguments: port, file that a heap dump would be written to, and user and password if it has them.
 */
public final class JmxClient {
    private interface Attempt {
        Object in(MBeanServerConnection beans) throws Exception;
    }

    private JmxClient() {}

    public static void main(String[] arguments) throws Exception {
        JMXServiceURL url =
                new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments[0] + "/jmxrmi");
        String[] login = arguments.length > 2 ? new String[] {arguments[2], arguments[3]} : null;
        Map<String, Object> environment = login == null ? Map.of() : Map.of(JMXConnector.CREDENTIALS, login);
        try (JMXConnector connector = JMXConnectorFactory.connect(url, environment)) {
            System.out.println("connect: yes");
            for (Map.Entry<String, Attempt> each : attempts(arguments[1]).entrySet()) {
                System.out.println(each.getKey() + ": " + tried(each.getValue(), connector.getMBeanServerConnection()));
            }
        } catch (SecurityException refused) {
            System.out.println("connect: " + refused.getClass().getSimpleName());
        }
    }

    private static Map<String, Attempt> attempts(String dump) throws Exception {
        ObjectName gauge = new ObjectName("kafka.log:type=LogManager,name=DiskFullLogDirectoryCount");
        ObjectName diagnostic = new ObjectName("com.sun.management:type=HotSpotDiagnostic");
        ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
        ObjectName runtime = new ObjectName("java.lang:type=Runtime");
        ObjectName memory = new ObjectName("java.lang:type=Memory");
        Map<String, Attempt> all = new LinkedHashMap<>();
        all.put("gauge", beans -> beans.getAttribute(gauge, "Value"));
        all.put("secrets", beans -> beans.getAttribute(runtime, "SystemProperties"));
        all.put("arguments", beans -> beans.getAttribute(runtime, "InputArguments"));
        all.put("properties-command", beans -> beans.invoke(commands, "vmSystemProperties", null, null));
        all.put("write", beans -> {
            beans.setAttribute(memory, new Attribute("Verbose", true));
            return "done";
        });
        all.put("load-code", beans -> beans.createMBean("javax.management.loading.MLet", null));
        all.put("dump", beans -> beans.invoke(
                diagnostic,
                "dumpHeap",
                new Object[] {dump, true},
                new String[] {String.class.getName(), boolean.class.getName()}));
        return all;
    }

    private static String tried(Attempt attempt, MBeanServerConnection beans) {
        try {
            return String.valueOf(attempt.in(beans));
        } catch (Exception refused) {
            return refused.getClass().getSimpleName();
        }
    }
}
