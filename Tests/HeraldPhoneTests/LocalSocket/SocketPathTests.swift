import Foundation
import Testing

@testable import HeraldPhone

@Suite struct SocketPathTests {
    @Test(arguments: [103, 104, 107, 108, 300])
    func `a socket is bound at a path of any length`(length: Int) async throws {
        let temporary = try TemporaryFolder()
        let room = length - temporary.path.utf8.count - "///a.sock".utf8.count
        try #require(room > 1)
        // Two folders: a name has at most 255 bytes.
        let names = [room / 2, room - room / 2].map { String(repeating: "f", count: $0) }
        let folder = temporary.path + "/" + names.joined(separator: "/")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = folder + "/a.sock"
        #expect(path.utf8.count == length)
        let isBound = try await SocketPath.shortened(path) { short in
            // The folder stays open while the caller waits.
            await Task.yield()
            return Self.bind(short)
        }
        #expect(isBound)
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test func `a folder that is not there is named`() async throws {
        let path = "/" + String(repeating: "missing/", count: 20) + "a.sock"
        await #expect { try await SocketPath.shortened(path) { $0 } } throws: { "\($0)".contains("missing/missing") }
    }

    private static func bind(_ path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
