import Foundation
import HeraldListener

/// Judges the owner and the mode of a file or folder of a data folder.
struct FileCheck {
    let path: String
    /// In bits, with the kind.
    let mode: mode_t
    let owner: UInt32
    /// The user that runs the service: the owner of the data folder.
    let service: UInt32
    /// Bits that must not be set.
    let forbidden: mode_t

    /// nil if nothing is wrong.
    var finding: DoctorFinding? {
        if owner != service {
            return .fail(
                "files",
                "\(path) belongs to user \(owner), the data folder to user \(service)",
                "chown \(service) \(path)"
            )
        }
        guard mode & forbidden != 0 else { return nil }
        let digits = String(mode & 0o777, radix: 8)
        let wanted = mode & S_IFMT == S_IFDIR ? "700" : forbidden == 0o022 ? "644" : "600"
        return .fail("files", "\(path) is open to others (mode 0\(digits))", "chmod \(wanted) \(path)")
    }
}

/// Judges whether a hostname of the configuration leads to this machine.
struct NameCheck {
    let name: String
    /// The addresses to which the name resolves here; nil if it does not.
    let addresses: [String]?
    /// The addresses of this machine.
    let local: Set<String>

    var finding: DoctorFinding {
        guard let addresses else {
            return .warn(
                "names",
                "\(name) does not resolve here",
                "add it to the DNS, or check this machine's resolver"
            )
        }
        let list = addresses.joined(separator: ", ")
        guard local.isDisjoint(with: addresses) else { return .ok("names", "\(name) is \(list), this machine") }
        return .warn(
            "names",
            "\(name) is \(list), which this machine does not have",
            "correct the DNS, unless a load balancer or router there leads here"
        )
    }
}

/// Judges the limit of open files.
struct DescriptorCheck {
    let configuration: ServerConfiguration
    /// The limit, and whose it is: the running service's or this shell's.
    let limit: Int
    let isOfService: Bool

    var finding: DoctorFinding {
        let whose = isOfService ? "the service" : "a process of this shell"
        let text = "\(whose) may open \(limit) files"
        let remedy = "raise LimitNOFILE= in the unit, or ulimit -Hn"
        do {
            let shares = try DescriptorShares(among: configuration, of: limit)
            guard let connections = shares.connections else { return .ok("descriptors", text) }
            let devices = zip(configuration.listeners, connections)
                .first { configuration[keyPath: $0.0].name == configuration.deviceListener.name }
                .map { "\(text): at most \($0.1) devices connect" }
            return shares.isScarce ? .warn("descriptors", devices ?? text, remedy) : .ok("descriptors", devices ?? text)
        } catch {
            return .fail("descriptors", text + ", too few", remedy)
        }
    }
}
