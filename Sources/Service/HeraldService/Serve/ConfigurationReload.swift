import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import Logging
import Synchronization

/// Applies changes of the configuration while the service runs.
///
/// A configuration with a mistake is refused as a whole: the log says why, and the present one stays in force.
final class ConfigurationReload: Sendable {
    private let read: @Sendable () throws -> ServerConfiguration
    private let assembly: ServiceAssembly
    private let threshold: LogThreshold
    /// The configuration that was read last.
    private let current: Mutex<ServerConfiguration>

    /// `read` reads the configuration again, from the same sources.
    init(
        _ assembly: ServiceAssembly,
        threshold: LogThreshold,
        read: @escaping @Sendable () throws -> ServerConfiguration
    ) {
        self.assembly = assembly
        self.threshold = threshold
        self.read = read
        current = Mutex(assembly.configuration)
    }

    /// Reads the configuration again and applies the live settings.
    package func reload() async {
        let logger = assembly.logger
        let next: ServerConfiguration
        do {
            next = try read()
            try assembly.drillOperations.check(next.drills)
            try next.checkPayloadDrills(on: assembly.configuration.host)
        } catch {
            logger.error("configuration not reloaded; the present one stays in force", metadata: ["error": "\(error)"])
            return
        }
        let former = current.withLock { current in
            defer { current = next }
            return current
        }
        let live = former.changes(to: next).filter(\.isLive)
        if !live.isEmpty { await apply(next, after: former) }
        logger.notice("configuration reloaded", metadata: ["changed": "\(ConfigurationReload.list(live))"])
        let waiting = assembly.configuration.changes(to: next).filter { !$0.isLive }
        if !waiting.isEmpty {
            logger.warning(
                "takes effect at the next start",
                metadata: ["settings": "\(ConfigurationReload.list(waiting))"]
            )
        }
    }

    private func apply(_ configuration: ServerConfiguration, after former: ServerConfiguration) async {
        threshold.level = configuration.logLevel
        assembly.delivery.postOffice.replaceTerms(configuration.postOffice.terms)
        assembly.listeners.gateway.replaceRules(configuration.gateway.rules)
        assembly.listeners.courier.replaceLimits(configuration.courier)
        assembly.trials.drills.allowsPayloadDrills = configuration.allowsPayloadDrills
        // A configured drill that has ended does not begin again because something else changed.
        guard configuration.drills != former.drills else { return }
        do {
            try await assembly.drillOperations.configure(configuration.drills)
        } catch {
            assembly.logger.error("could not start a configured drill", metadata: ["error": "\(error)"])
        }
    }

    private static func list(_ settings: [Setting<ServerConfiguration>]) -> String {
        settings.isEmpty ? "nothing" : settings.map(\.key.name).joined(separator: " ")
    }
}
