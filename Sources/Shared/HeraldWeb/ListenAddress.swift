import HeraldModel

/// Address of a listener for operators and their tools.
package struct ListenAddress: Sendable {
    package enum Address: Sendable {
        /// Host address and port; 0 picks a free port.
        case port(host: String, port: Int)
        /// A Unix socket.
        case socket(path: String)
    }

    /// Name of the listener in errors: `console`.
    package let listener: String
    package let address: Address
    /// Names of the options for port and host in errors: `--console-port`.
    package let portOption: String
    package let hostOption: String

    package init(listener: String, _ address: Address, portOption: String, hostOption: String) {
        self.listener = listener
        self.address = address
        self.portOption = portOption
        self.hostOption = hostOption
    }
}

extension ListenAddress: CustomStringConvertible {
    package var description: String {
        switch address {
        case .port(let host, let port): "\(HostPort(host: host, port: port))"
        case .socket(let path): path
        }
    }
}
