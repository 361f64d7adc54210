import HeraldModel
import NIOCore

/// The reach of an address to listen on.
package enum ListenScope {
    /// The public address of a listener on `host`.
    ///
    /// `0.0.0.0` stands for the machine's addresses of version 4, `::` for all of them. `machine` has the
    /// addresses of the machine's interfaces; nil if they are unknown.
    /// - Returns: An address that hosts beyond the machine's own network may reach; nil if there is none.
    package static func publicAddress(on host: String, machine: [String]?) -> String? {
        guard let address = NumericAddress(host), address.isAny, let machine else { return isPublic(host) ? host : nil }
        return machine.first { (address.bytes.count == 16 || !$0.contains(":")) && isPublic($0) }
    }

    /// The addresses of this machine's interfaces; nil if the system does not tell them.
    package static func machineAddresses() -> [String]? {
        (try? System.enumerateDevices())?.compactMap { $0.address?.ipAddress }
    }

    /// Whether only this machine may reach it.
    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || NumericAddress(host)?.isLoopback == true
    }

    /// Whether hosts beyond the machine's own network may reach it.
    ///
    /// Loopback, link-local, private and shared addresses (RFC 1918, RFC 4193, RFC 6598) and `localhost` are not public.
    /// All addresses at once (`0.0.0.0`, `::`) are, and so is every other name.
    static func isPublic(_ host: String) -> Bool {
        if host == "localhost" { return false }
        guard let bytes = NumericAddress(host)?.bytes else { return true }
        if bytes.count == 4 { return isPublic(version4: bytes[...]) }
        // An address of version 4 within one of version 6 (RFC 4291 §2.5.5.2).
        if bytes[0..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            return isPublic(version4: bytes[12..<16])
        }
        let isLoopback = bytes[0..<15].allSatisfy { $0 == 0 } && bytes[15] == 1
        let isLinkLocal = bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
        let isUniqueLocal = bytes[0] & 0xFE == 0xFC
        return !(isLoopback || isLinkLocal || isUniqueLocal)
    }

    private static func isPublic(version4 bytes: ArraySlice<UInt8>) -> Bool {
        let (first, second) = (bytes[bytes.startIndex], bytes[bytes.startIndex + 1])
        switch first {
        case 10, 127: return false
        case 100: return !(64...127).contains(second)
        case 172: return !(16...31).contains(second)
        case 169: return second != 254
        case 192: return second != 168
        default: return true
        }
    }
}
