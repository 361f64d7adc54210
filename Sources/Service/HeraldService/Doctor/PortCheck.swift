import Foundation
import HeraldModel

/// Judges whether a listener can have its port.
struct PortCheck {
    /// The result of an attempt to listen.
    enum Attempt: Hashable {
        case free
        /// The running service of this data folder has the port.
        case served
        /// Another process has it: its name and identifier, if the system says.
        case taken(by: String?)
        /// The system refuses the port to this user.
        case denied
        /// The address is not one of this machine's.
        case foreign
        case failed(String)
    }

    /// The setting of the port, like `api-port`, or of the address.
    let setting: String
    let host: String
    let port: Int
    let attempt: Attempt

    var finding: DoctorFinding {
        let place = "\(setting) \(HostPort(host: host, port: port))"
        switch attempt {
        case .free: return .ok("port", "\(place) is free")
        case .served: return .ok("port", "\(place) is this service's")
        case .taken(let holder):
            let name = holder ?? "another process"
            return .fail("port", "\(place) is taken by \(name)", "stop it, or choose another \(setting)")
        case .denied:
            return .fail(
                "port",
                "\(place) needs a privilege",
                "choose a port above 1023, or write AmbientCapabilities=CAP_NET_BIND_SERVICE and "
                    + "CapabilityBoundingSet=CAP_NET_BIND_SERVICE into the unit"
            )
        case .foreign:
            return .fail(
                "port",
                "\(setting): \(host) is not an address of this machine",
                "write 0.0.0.0 or an address of this machine as \(setting); names go to hostname"
            )
        case .failed(let reason):
            return .fail("port", "\(place) cannot be opened (\(reason))", "check the address and the network")
        }
    }

    /// The inode of the socket that listens on a port, in the text of `/proc/net/tcp` or `tcp6`.
    ///
    /// Lines are `sl local_address rem_address st … inode`, with hexadecimal ports; state `0A` is LISTEN (proc(5)).
    static func listener(on port: Int, in text: String) -> String? {
        for line in text.split(separator: "\n").dropFirst() {
            let parts = line.split(separator: " ", omittingEmptySubsequences: true)
            guard parts.count > 9, parts[3] == "0A",
                let found = parts[1].split(separator: ":").last.flatMap({ Int($0, radix: 16) }), found == port
            else { continue }
            return String(parts[9])
        }
        return nil
    }
}
