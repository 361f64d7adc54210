import HeraldModel
import HeraldTrust

/// Judges the certificates of a service.
struct TrustCheck {
    let now: WallTime
    let ends: TrustEnds
    /// The names that the configuration gives the service.
    let hostnames: [String]
    /// The name by which others open the console over TLS, if the configuration says so.
    var consoleName: String?

    /// How long before the end of an authority the check warns.
    private static let notice = Duration.seconds(180 * 86_400)

    var findings: [DoctorFinding] {
        [server] + authorities + [names, console].compactMap(\.self)
    }

    private var server: DoctorFinding {
        let text = "the server certificate is valid until \(day(ends.server.expires))"
        if ends.server.expires <= now {
            return .fail(
                "certificates",
                "the server certificate ended on \(day(ends.server.expires))",
                ends.server.isOurs ? "start the service, which renews it" : "replace trust/server.pem"
            )
        }
        // Herald's own is renewed 90 days before its end, so this one is only due while no service runs.
        guard ends.server.isDue(at: now), !ends.server.isOurs else { return .ok("certificates", text) }
        return .warn("certificates", text, "replace trust/server.pem; the service needs no restart")
    }

    private var authorities: [DoctorFinding] {
        ends.authorities.compactMap { authority in
            let text = "the \(authority.name) is valid until \(day(authority.expires))"
            if authority.expires <= now {
                return .fail("certificates", text, "replace it (docs/trust.md)")
            }
            return authority.expires - now < Self.notice
                ? .warn("certificates", text, "replace it (docs/trust.md)") : nil
        }
    }

    private var names: DoctorFinding? {
        let missing = hostnames.filter { !isNamed($0) }
        guard !missing.isEmpty else { return nil }
        let list = missing.joined(separator: ", ")
        return .warn(
            "certificates",
            "the server certificate does not have the name \(list)",
            "restart the service, which adds it"
        )
    }

    private var console: DoctorFinding? {
        guard let consoleName, !hostnames.contains(consoleName), !isNamed(consoleName) else { return nil }
        return .warn(
            "certificates",
            "the server certificate does not have \(consoleName) (console-host), so browsers and tools refuse it there",
            "add it to hostname, or open the console by a name of the certificate"
        )
    }

    private func isNamed(_ name: String) -> Bool {
        ServerName(name)?.isNamed(in: ends.server.names) ?? false
    }

    private func day(_ moment: WallTime) -> String { String(moment.rfc3339.prefix(10)) }
}
