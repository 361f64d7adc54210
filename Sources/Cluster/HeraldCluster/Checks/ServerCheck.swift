package import HeraldModel

/// Decides from the servers' own reports whether they keep what they acknowledge.
package struct ServerCheck {
    /// The time by which a server's clock may differ before the check warns.
    package static let clockWarning = Duration.seconds(2)
    /// The time by which a server's clock may differ at most: with more, a replica could drop what has not expired.
    package static let clockLimit = Duration.seconds(30)
    /// The first version that syncs each Raft append in groups, and answers bounded reads.
    package static let oldestVersion = ServerVersion(major: 2, minor: 15, patch: 1)

    /// The time of this node between the question and the answer.
    package let now: WallTime

    package init(now: WallTime) {
        self.now = now
    }

    /// The faults of a server that answered.
    package func findings(_ server: ServerReport) -> [ClusterFinding] {
        [version(server), sync(server), clock(server)].compactMap(\.self)
    }

    private func version(_ server: ServerReport) -> ClusterFinding? {
        if let version = ServerVersion(server.version), version >= Self.oldestVersion { return nil }
        return ClusterFinding(
            .refusal,
            "nats-server \(server.name) is version \(server.version)",
            remedy: "install \(Self.oldestVersion) or later (Debian's package is too old), and restart that server"
        )
    }

    private func sync(_ server: ServerReport) -> ClusterFinding? {
        switch server.syncsAlways {
        case true?: nil
        case false?:
            ClusterFinding(
                .refusal,
                "nats-server \(server.name) does not sync every write, so it can lose what it has acknowledged",
                remedy: "set `sync_interval: always` in its jetstream block, and restart that server"
            )
        case nil:
            ClusterFinding(
                .refusal,
                "nats-server \(server.name) has no JetStream",
                remedy: "add a jetstream block (`herald cluster nats-conf` writes one), and restart that server",
                // Its monitoring port answers before JetStream has begun.
                mayPass: true
            )
        }
    }

    private func clock(_ server: ServerReport) -> ClusterFinding? {
        let ahead = server.now - now
        let difference = ahead < .zero ? .zero - ahead : ahead
        guard difference > Self.clockWarning else { return nil }
        return ClusterFinding(
            difference > Self.clockLimit ? .refusal : .warning,
            "the clock of nats-server \(server.name) is \(difference.components.seconds) s "
                + "\(ahead < .zero ? "behind" : "ahead of") this machine's",
            remedy: "synchronize both with NTP (timedatectl set-ntp true)"
        )
    }
}

/// A version of nats-server: three numbers, and words that do not count.
package struct ServerVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let major, minor, patch: Int

    package init(major: Int, minor: Int, patch: Int) {
        self.major = major
        self.minor = minor
        self.patch = patch
    }

    package init?(_ text: String) {
        let numbers = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }.split(separator: ".").compactMap {
            Int($0)
        }
        guard numbers.count == 3 else { return nil }
        self.init(major: numbers[0], minor: numbers[1], patch: numbers[2])
    }

    package static func < (left: Self, right: Self) -> Bool {
        (left.major, left.minor, left.patch) < (right.major, right.minor, right.patch)
    }

    package var description: String { "\(major).\(minor).\(patch)" }
}
