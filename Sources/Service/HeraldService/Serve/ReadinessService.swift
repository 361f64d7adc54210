import Foundation
import HeraldModel
import HeraldTrust
import ServiceLifecycle

/// Prints and publishes the listeners' addresses once all of them are open.
struct ReadinessService: Service {
    let folder: DataFolder
    let configuration: ServerConfiguration
    /// The names of the server certificate.
    let names: Set<ServerName>
    let ports: ServiceListeners.Ports
    /// The activation listener's port, once it is open; nil if it never opens.
    let activation: @Sendable () async -> Int?
    /// The console's port, once its listeners are open; nil in it for a console without a port, nil if they never open.
    let console: @Sendable () async -> Int??
    /// Called with the addresses after `ready` was printed.
    let ready: @Sendable (ListeningAddresses) -> Void
    let announce: @Sendable (String) -> Void

    func run() async throws {
        guard let activation = await activation(), let console = await console() else { return }
        let listeners = ListeningAddresses(
            api: ports.api,
            binary: ports.binary.binary,
            feedback: ports.binary.feedback,
            device: ports.device,
            activation: activation,
            console: console,
            pid: getpid(),
            host: configuration.host,
            name: ListeningAddresses.name(of: configuration.host, in: names),
            consoleHost: configuration.consoleHost,
            consoleTLS: configuration.isConsoleOverTLS,
            proxiedConsole: configuration.consoleURL.isEmpty ? nil : configuration.consoleURL
        )
        listeners.lines.forEach(announce)
        try listeners.write(to: folder)
        announce("ready")
        ready(listeners)
        try? await gracefulShutdown()
    }
}
