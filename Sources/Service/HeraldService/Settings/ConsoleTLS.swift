import HeraldConsole
import HeraldModel

/// Choice of TLS at the console's port.
///
/// Behind a proxy with TLS, a second one would need the proxy to trust the server certificate, so it can be left out.
package enum ConsoleTLS: String, CaseIterable, Sendable {
    /// Unless the console listens on loopback, where nobody reads along.
    case auto
    case on
    case off
}

extension ServerConfiguration {
    /// Whether the console's port speaks TLS.
    package var isConsoleOverTLS: Bool {
        switch consoleTLS {
        case .auto: !ListenScope.isLoopback(consoleHost)
        case .on: true
        case .off: false
        }
    }

    /// Whether cookies and tokens cross a network in the clear.
    package var isConsoleExposed: Bool {
        consoleMode != .off && !isConsoleOverTLS && !ListenScope.isLoopback(consoleHost)
    }

    /// The name by which others open the console, which its certificate needs; nil if the address does not say.
    package var consoleName: String? {
        guard consoleMode != .off, isConsoleOverTLS, NumericAddress(consoleHost)?.isAny != true else { return nil }
        return consoleHost
    }
}
