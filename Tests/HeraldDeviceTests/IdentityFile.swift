import Foundation
import HeraldModel
import HeraldTrust

/// The identity of a device `kitchen`, made once for all tests.
enum IdentityFile {
    static let pem: Result<[UInt8], any Error> = Result {
        let path = NSTemporaryDirectory() + "/herald-test-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: path) }
        let now = WallTime(seconds: Int64(Date().timeIntervalSince1970))
        let folder = try TrustFolder.create(at: path, now: now)
        return Array(try folder.enrollDevice(name: nil, id: DeviceID("kitchen"), now: now).pem.utf8)
    }
}
