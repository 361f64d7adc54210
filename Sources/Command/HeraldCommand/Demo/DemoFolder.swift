import Foundation
import HeraldModel
import HeraldService
import HeraldTrust

/// The files of `serve --demo`, made once: a provider's certificate, a provider's key, and a device.
///
///     demo/             0700
///       provider.pem    0600   certificate, chain and key of a provider for the demo's app
///       AuthKey_….p8    0600   a key of the team DEMO000001 for the same app
///       device.pem      0600   certificate, chain and key of a device
struct DemoFolder: Sendable {
    static let app = "com.example.pushchat"
    static let team = "DEMO000001"

    let path: String

    var providerPath: String { path + "/provider.pem" }
    var devicePath: String { path + "/device.pem" }

    init(_ folder: DataFolder) {
        path = folder.demoPath
    }

    /// Makes what is missing.
    /// - Throws: `TrustError` or ``CommandError``.
    func make(with trust: TrustFolder, app: Topic, now: WallTime) async throws {
        try DataFolder.securePrivateFolder(path)
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw CommandError(.folder, "cannot read \(path): check its owner and mode")
        }
        let both = Set(PushEnvironment.allCases)
        if !names.contains(where: { $0.hasPrefix("AuthKey_") }) {
            let key = try await trust.providers.makeKey(
                team: DemoFolder.team,
                topics: [app],
                environments: both,
                now: now
            )
            try write(key.pem, to: "\(path)/\(key.fileName)")
        }
        if !names.contains("provider.pem") {
            let issued = try await trust.providers.issueCertificate(
                topics: [app],
                team: DemoFolder.team,
                environments: both,
                now: now
            )
            try write(issued.pem, to: providerPath)
        }
        if !names.contains("device.pem") {
            try write(try await trust.devices.enroll(name: "demo", now: now).pem, to: devicePath)
        }
    }

    private func write(_ pem: String, to path: String) throws {
        try SafeFile.write(Array(pem.utf8), to: path, mode: 0o600)
    }
}
