/// Where a door for people and their tools listens.
package struct WebPlace: Sendable {
    package enum Address: Sendable {
        /// A port of an address of this machine; 0 picks a free one.
        case port(host: String, port: Int)
        /// A Unix socket.
        case socket(path: String)
    }

    /// What the door is called in errors: `console`.
    package let door: String
    package let address: Address
    /// The options that say where, as the user types them: `--console-port`.
    package let portOption: String
    package let hostOption: String

    package init(door: String, _ address: Address, portOption: String, hostOption: String) {
        self.door = door
        self.address = address
        self.portOption = portOption
        self.hostOption = hostOption
    }
}

extension WebPlace: CustomStringConvertible {
    package var description: String {
        switch address {
        case .port(let host, let port): "\(host):\(port)"
        case .socket(let path): path
        }
    }
}
