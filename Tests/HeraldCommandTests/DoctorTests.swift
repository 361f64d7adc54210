import Foundation
import HeraldModel
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct DoctorTests {
    private static let now = WallTime(seconds: 1_800_000_000)

    @Test(arguments: [
        (PortCheck.Attempt.free, DoctorFinding.Level.ok, "free"), (.served, .ok, "this service's"),
        (.taken(by: "nginx (process 7)"), .fail, "nginx (process 7)"), (.taken(by: nil), .fail, "another process"),
        (.denied, .fail, "CAP_NET_BIND_SERVICE"), (.failed("why"), .fail, "why"),
    ])
    func `a port is judged by an attempt to listen`(
        attempt: PortCheck.Attempt,
        level: DoctorFinding.Level,
        words: String
    ) {
        let finding = PortCheck(setting: "api-port", host: "::1", port: 443, attempt: attempt).finding
        #expect(finding.level == level && finding.line.contains(words) && finding.line.contains("[::1]:443"))
        #expect((finding.remedy == nil) == (level == .ok))
    }

    @Test func `the socket that listens on a port is found in the kernel's table`() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:0895 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 111 1 0
               1: 00000000:0895 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 222 1 0
               2: short
            """
        #expect(PortCheck.listener(on: 2197, in: table) == "222")
        #expect(PortCheck.listener(on: 2195, in: table) == nil)
    }

    private func levels(_ disk: DiskCheck) -> [DoctorFinding.Level] { disk.findings.map(\.level) }

    @Test func `a disk is judged by space, kind and syncs`() {
        let good = DiskCheck(
            path: "/d",
            freeBytes: 8 << 30,
            freeFiles: 1 << 20,
            kind: "ext4",
            sync: .milliseconds(2),
            failure: nil
        )
        #expect(levels(good) == [.ok, .ok, .ok])
        func changed(_ change: (inout DiskCheck) -> Void) -> [DoctorFinding.Level] {
            var disk = good
            change(&disk)
            return levels(disk)
        }
        #expect(changed { $0.freeBytes = 500 << 20 } == [.warn, .ok, .ok])
        #expect(changed { $0.freeBytes = 63 << 20 } == [.fail, .ok, .ok])
        #expect(changed { $0.freeFiles = 3 } == [.ok, .warn, .ok, .ok])
        #expect(changed { $0.kind = "nfs4" } == [.ok, .warn, .ok])
        #expect(
            changed {
                $0.kind = "tmpfs"
                $0.sync = .microseconds(1)
            } == [.ok, .warn, .ok]
        )
        #expect(changed { $0.sync = .milliseconds(300) } == [.ok, .ok, .warn])
        #expect(changed { $0.sync = .microseconds(1) } == [.ok, .ok, .warn])
        #expect(changed { $0.sync = nil } == [.ok, .ok, .fail])
    }

    @Test(arguments: [
        ("/var/lib/herald", "ext4"), ("/var/lib", "ext4"), ("/mnt/a b/x", "nfs4"), ("/varnish", "overlay"),
        ("/", "overlay"),
    ])
    func `the file system of a path is the one of its longest mount`(path: String, kind: String) {
        let mounts = """
            overlay / overlay rw 0 0
            /dev/sda /var ext4 rw 0 0
            server:/x /mnt/a\\040b nfs4 rw 0 0
            """
        #expect(DiskCheck.kind(of: path, mounts: mounts) == kind)
    }

    @Test func `a clock before the build or the certificates is wrong`() throws {
        func level(_ check: ClockCheck) -> DoctorFinding.Level { check.finding.level }
        let before = Self.now - .seconds(86_400)
        let after = Self.now + .seconds(86_400)
        #expect(level(ClockCheck(now: Self.now, built: before, certified: before, isSynchronized: true)) == .ok)
        #expect(level(ClockCheck(now: Self.now)) == .ok)
        #expect(level(ClockCheck(now: Self.now, built: after)) == .fail)
        #expect(level(ClockCheck(now: Self.now, certified: after)) == .fail)
        #expect(level(ClockCheck(now: Self.now, certified: Self.now + .seconds(60))) == .ok)
        #expect(level(ClockCheck(now: Self.now, isSynchronized: false)) == .warn)
        #expect(ClockCheck.day(ofCommit: "3f605882a643+, 2026-11-23")?.rfc3339.hasPrefix("2026-11-23") == true)
        #expect(ClockCheck.day(ofCommit: "commit unknown") == nil)
    }

    @Test func `a file of another owner, or open to others, fails with the command that helps`() {
        func check(mode: mode_t, owner: UInt32 = 5, forbidden: mode_t = 0o077) -> DoctorFinding? {
            FileCheck(path: "/d/f", mode: mode, owner: owner, service: 5, forbidden: forbidden).finding
        }
        #expect(check(mode: S_IFREG | 0o600) == nil && check(mode: S_IFREG | 0o644, forbidden: 0o022) == nil)
        #expect(check(mode: S_IFREG | 0o640)?.remedy == "chmod 600 /d/f")
        #expect(check(mode: S_IFDIR | 0o755)?.remedy == "chmod 700 /d/f")
        #expect(check(mode: S_IFREG | 0o666, forbidden: 0o022)?.remedy == "chmod 644 /d/f")
        #expect(check(mode: S_IFREG | 0o600, owner: 0)?.remedy == "chown 5 /d/f")
    }

    @Test func `a name should lead to this machine`() {
        func level(_ addresses: [String]?) -> DoctorFinding.Level {
            NameCheck(name: "push.example.com", addresses: addresses, local: ["10.0.0.1", "::1"]).finding.level
        }
        #expect(level(["10.0.0.1"]) == .ok && level(["192.0.2.1", "::1"]) == .ok)
        #expect(level(["192.0.2.1"]) == .warn && level(nil) == .warn)
    }

    @Test func `descriptors are compared with what the listeners want`() {
        func finding(_ limit: Int) -> DoctorFinding {
            DescriptorCheck(configuration: ServerConfiguration(), limit: limit, isOfService: true).finding
        }
        #expect(finding(1_048_576).level == .ok)
        #expect(finding(1024).level == .warn && finding(1024).text.contains("devices connect"))
        #expect(finding(100).level == .fail)
    }
}
