import HTTPTypes
import HeraldWeb
import Hummingbird

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Keeps other sites' pages away from the device: they run in the user's browser, from where a loopback port is reached.
///
/// A request must name this machine (a name of somebody else's that was made to point here, DNS rebinding, is refused), and
/// what changes something must be JSON, which no form of another site can send, from this very page or from no page at all.
struct ScreenGuard: RouterMiddleware {
    /// The address that the screen listens on.
    let host: String

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        guard let authority = request.head.authority, isOurs(authority) else {
            throw WebRefusal(
                421,
                "the screen answers to localhost, a loopback address, or the address given with --screen-host"
            )
        }
        if request.method != .get, request.method != .head {
            try refuseForeign(request, authority: authority)
        }
        return try await next(request, context)
    }

    private func refuseForeign(_ request: Request, authority: String) throws {
        if let origin = request.headers[.origin], origin.lowercased() != "http://" + authority.lowercased() {
            throw WebRefusal(403, "a page of another site may not use the device")
        }
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard type?.filter({ $0 != " " }) == "application/json" else {
            throw WebRefusal(415, "send the action with content-type: application/json")
        }
    }

    /// Whether a request's `Host` means this screen.
    func isOurs(_ authority: String) -> Bool {
        guard let name = ScreenGuard.name(in: authority.lowercased()) else { return false }
        if name == "localhost" || name.hasSuffix(".localhost") || name == host.lowercased() { return true }
        guard let address = NumericAddress(name) else { return false }
        // An address is no name that somebody could point elsewhere; which of them reach us is the system's to say.
        return address.isLoopback || NumericAddress(host)?.isAny == true
    }

    /// The host without its port and brackets; nil for what is no host at all.
    private static func name(in authority: String) -> String? {
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            let rest = authority[authority.index(after: end)...]
            guard rest.isEmpty || isPort(rest) else { return nil }
            return String(authority[authority.index(after: authority.startIndex)..<end])
        }
        guard let colon = authority.firstIndex(of: ":") else { return authority }
        return isPort(authority[colon...]) ? String(authority[..<colon]) : nil
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.first == ":" && text.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
    }
}

/// An address in digits.
struct NumericAddress {
    /// Whether only this machine has it.
    let isLoopback: Bool
    /// Whether it stands for all addresses of the machine.
    let isAny: Bool

    init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            let number = UInt32(bigEndian: four.s_addr)
            isLoopback = number >> 24 == 127
            isAny = number == 0
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            let bytes = withUnsafeBytes(of: six) { Array($0) }
            isLoopback = bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
            isAny = bytes.allSatisfy { $0 == 0 }
        } else {
            return nil
        }
    }
}
