import CPosix
import Foundation

/// The user and the group to whom a folder belongs.
package struct FolderOwner: Hashable {
    package let user: UInt32
    package let group: UInt32

    /// - Returns: nil if the system does not say.
    package init?(of path: String) {
        var status = herald_status()
        guard herald_status(path, 1, &status) == 0 else { return nil }
        (user, group) = (status.user, status.group)
    }

    /// Runs code with the rights of this owner if root runs the process; otherwise with the rights of the caller.
    ///
    /// So root writes nothing where a link of the owner leads. All threads of the process have these rights meanwhile.
    /// - Throws: ``CommandError/Code/folder`` if the system refuses the change, and what `body` throws.
    func acting<Result>(_ body: () throws -> Result) throws -> Result {
        let end = try act()
        defer { end() }
        return try body()
    }

    /// Takes the rights of this owner as ``acting(_:)`` does.
    /// - Returns: Takes the rights of the caller again.
    package func act() throws -> () -> Void {
        guard geteuid() == 0, user != 0 else { return {} }
        let count = getgroups(0, nil)
        var groups = [gid_t](repeating: 0, count: Int(max(0, count)))
        guard count >= 0, getgroups(count, &groups) == count else { throw refusal }
        let ownGroup = getegid()
        let end = { _ = (seteuid(0), setegid(ownGroup), setgroups(numericCast(groups.count), groups)) }
        guard setgroups(1, [group]) == 0, setegid(group) == 0, seteuid(user) == 0 else {
            end()
            throw refusal
        }
        return end
    }

    /// The end of a sentence about a file or folder of another user.
    package static func refusal(of owner: UInt32) -> String {
        let name = name(of: owner)
        return "belongs to user \(name), and this command runs as user \(Self.name(of: geteuid())): run it as \(name), "
            + "for example `sudo -u \(name) herald …`"
    }

    /// The name of a user; the number if it has none.
    package static func name(of user: UInt32) -> String {
        // In bytes; longer than an entry of any system.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1 << 14) { text in
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard let start = text.baseAddress, getpwuid_r(user, &entry, start, text.count, &found) == 0,
                let name = found?.pointee.pw_name
            else { return "\(user)" }
            return String(cString: name)
        }
    }

    private var refusal: CommandError {
        CommandError(
            .folder,
            "cannot act as user \(user), who owns the folder (\(String(cString: strerror(errno)))): "
                + "run the command as that user"
        )
    }
}
