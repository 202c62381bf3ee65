package kafka.server;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;

import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

/**
 * The logins of a controller that the test keeps in the JAAS file of its own JVM, as keys of the controller's properties.
 */
final class StaticLogins {
    private static final String CONTEXT = "KafkaServer";

    private StaticLogins() { }

    /** Add what the listener's mechanisms need and the properties do not have. */
    static void add(Properties properties, String listener) {
        if (!protocol(properties, listener).startsWith("SASL_"))
            return;
        for (String mechanism : properties.getProperty("sasl.enabled.mechanisms", "").split("\\s*,\\s*")) {
            String key = "listener.name." + lower(listener) + "." + lower(mechanism) + ".sasl.jaas.config";
            for (AppConfigurationEntry entry : entries(listener)) {
                if (entry.getLoginModuleName().toUpperCase(Locale.ROOT).contains(mechanism.split("-")[0] + "LOGINMODULE"))
                    properties.putIfAbsent(key, text(entry));
            }
        }
    }

    /** What a client needs to reach the listener as the controller itself; empty where it has no SASL. */
    static Map<String, Object> client(Properties properties, String listener) {
        Map<String, Object> found = new HashMap<>();
        String mechanism = properties.getProperty("sasl.mechanism.controller.protocol", "");
        Object login = properties.get("listener.name." + lower(listener) + "." + lower(mechanism) + ".sasl.jaas.config");
        if (protocol(properties, listener).startsWith("SASL_") && login != null)
            found.putAll(Map.of("security.protocol", protocol(properties, listener), "sasl.mechanism", mechanism,
                "sasl.jaas.config", login));
        return found;
    }

    private static String protocol(Properties properties, String listener) {
        for (String pair : properties.getProperty("listener.security.protocol.map", "").split("\\s*,\\s*")) {
            if (pair.startsWith(listener + ":"))
                return pair.substring(listener.length() + 1);
        }
        return "";
    }

    private static List<AppConfigurationEntry> entries(String listener) {
        try {
            for (String name : List.of(lower(listener) + "." + CONTEXT, CONTEXT)) {
                AppConfigurationEntry[] found = Configuration.getConfiguration().getAppConfigurationEntry(name);
                if (found != null)
                    return List.of(found);
            }
        } catch (SecurityException error) {
            return List.of();  // the JVM has no JAAS file
        }
        return List.of();
    }

    private static String text(AppConfigurationEntry entry) {
        StringBuilder text = new StringBuilder(entry.getLoginModuleName()).append(" required");
        entry.getOptions().forEach((name, value) -> text.append(" ").append(name).append("=\"").append(value).append("\""));
        return text.append(";").toString();
    }

    private static String lower(String name) {
        return name.toLowerCase(Locale.ROOT);
    }
}
