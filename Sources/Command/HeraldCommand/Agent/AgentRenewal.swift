import Foundation
import HeraldDevice
import HeraldModel
import HeraldService

/// Renews the certificate of a running agent, and reports it.
struct AgentRenewal {
    private let folder: DeviceFolder
    private let client: DeviceClient
    private let json: Bool

    /// Creates nothing if the folder has no activated device.
    init?(path: String?, client: DeviceClient, json: Bool) {
        guard let path, FileManager.default.fileExists(atPath: DeviceFolder(path).servicePath) else { return nil }
        folder = DeviceFolder(path)
        self.client = client
        self.json = json
    }

    /// Runs until it is cancelled.
    func run() async {
        do {
            try await DeviceRenewal(folder: folder).run { event in
                if case .renewed(let credential, _) = event { use(credential) }
                try say(event)
            }
        } catch is CancellationError {
            // The agent stops.
        } catch {
            complain("the certificate cannot be renewed", error)
        }
    }

    /// The next connection uses a renewed certificate.
    private func use(_ credential: DeviceCredential) {
        do { try client.replaceCredential(credential) } catch {
            complain("the renewed certificate is used only after a restart of the agent", error)
        }
    }

    private func complain(_ what: String, _ error: any Error) {
        Terminal.complain("herald: \(what): \(LogText.escaped("\(error)", limit: 512))")
    }

    private func say(_ event: RenewalEvent) throws {
        let line = Line(event)
        if json { try Terminal.sayJSON(line) } else { Terminal.say(line.words) }
    }

    /// The output for an event.
    private struct Line: Encodable {
        var event: String
        var expires: String?
        var reason: String?
        /// Seconds.
        var nextAttempt: Double?

        init(_ event: RenewalEvent) {
            switch event {
            case .renewed(_, let end):
                self.event = "certificate_renewed"
                expires = end.rfc3339
            case .failed(let why, let pause):
                self.event = "certificate_not_renewed"
                reason = LogText.escaped(why, limit: 512, spelling: .terminal)
                nextAttempt = pause / .seconds(1)
            case .expired(let end):
                self.event = "certificate_expired"
                expires = end.rfc3339
            }
        }

        var words: String {
            switch (expires, reason) {
            case (let end?, _) where event == "certificate_expired":
                "the certificate expired at \(end): activate the device again with `herald agent activate --replace`"
            case (let end?, _): "certificate renewed: valid until \(end)"
            default: "certificate not renewed: \(reason ?? ""); next attempt in \(Int(nextAttempt ?? 0)) s"
            }
        }
    }
}
