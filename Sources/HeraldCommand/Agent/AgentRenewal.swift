import Foundation
import HeraldDevice
import HeraldModel

/// Renews the certificate of an agent that runs, and says so.
struct AgentRenewal {
    private let folder: DeviceFolder
    private let client: DeviceClient
    private let json: Bool

    /// There is nothing to renew in a folder where no device was activated.
    init?(path: String?, client: DeviceClient, json: Bool) {
        guard let path, FileManager.default.fileExists(atPath: DeviceFolder(path).servicePath) else { return nil }
        folder = DeviceFolder(path)
        self.client = client
        self.json = json
    }

    /// Runs until it is cancelled, or there is nothing left to renew.
    func run() async {
        do {
            try await DeviceRenewal(folder: folder).run { event in
                if case .renewed(let credential, _) = event { try client.replaceCredential(credential) }
                try say(event)
            }
        } catch is CancellationError {
            // The agent ends.
        } catch {
            Terminal.complain("herald: the certificate is not renewed: \(LogText.escaped("\(error)", limit: 512))")
        }
    }

    private func say(_ event: RenewalEvent) throws {
        let line = Line(event)
        guard json else { return Terminal.say(line.words) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        Terminal.say(String(decoding: try encoder.encode(line), as: UTF8.self))
    }

    /// What is printed of an event.
    private struct Line: Encodable {
        var event: String
        var expires: String?
        var reason: String?
        /// Seconds.
        var nextAttempt: Double?

        private enum CodingKeys: String, CodingKey {
            case event
            case expires
            case reason
            case nextAttempt = "next_attempt"
        }

        init(_ event: RenewalEvent) {
            switch event {
            case .renewed(_, let end):
                self.event = "certificate renewed"
                expires = end.rfc3339
            case .failed(let why, let pause):
                self.event = "certificate not renewed"
                reason = LogText.escaped(why, limit: 512, spelling: .terminal)
                nextAttempt = pause / .seconds(1)
            case .expired(let end):
                self.event = "certificate expired"
                expires = end.rfc3339
            }
        }

        var words: String {
            switch (expires, reason) {
            case (let end?, _) where event == "certificate expired":
                "the certificate ended at \(end): activate the device anew, with `herald agent activate --replace`"
            case (let end?, _): "certificate renewed: good until \(end)"
            default: "certificate not renewed: \(reason ?? ""); next attempt in \(Int(nextAttempt ?? 0)) s"
            }
        }
    }
}
