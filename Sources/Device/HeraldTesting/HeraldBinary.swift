import Foundation

/// The `herald` binary of the machine.
struct HeraldBinary: Hashable, Sendable {
    /// The oldest version that this library can start.
    static let oldest = [0, 9, 0]

    let path: String

    /// Finds the binary: named by `HERALD_BINARY`, beside the running tests, or in `PATH`.
    /// - Throws: ``HeraldTestError``.
    static func find(_ environment: [String: String] = ProcessInfo.processInfo.environment) throws -> HeraldBinary {
        if let path = environment["HERALD_BINARY"], !path.isEmpty {
            guard isProgram(path) else {
                throw HeraldTestError(
                    "HERALD_BINARY names \(path), which is not a program: give it the path of `herald`"
                )
            }
            return HeraldBinary(path: path)
        }
        let own = CommandLine.arguments.first.map { URL(fileURLWithPath: $0).deletingLastPathComponent().path }
        let folders = [own].compactMap { $0 } + (environment["PATH"] ?? "").split(separator: ":").map(String.init)
        guard let path = folders.map({ $0 + "/herald" }).first(where: isProgram) else {
            throw HeraldTestError(
                "there is no `herald` in PATH: install Herald's package, or name the binary with HERALD_BINARY"
            )
        }
        return HeraldBinary(path: path)
    }

    /// Checks that the binary is new enough.
    /// - Throws: ``HeraldTestError``.
    func check() async throws {
        let text = try await ChildProcess.run(path, ["--version"])
        guard let version = HeraldBinary.version(in: text) else {
            throw HeraldTestError(
                "\(path) does not tell its version, so it is not Herald: it says \(text.debugDescription)"
            )
        }
        guard !version.lexicographicallyPrecedes(HeraldBinary.oldest) else {
            func name(_ numbers: [Int]) -> String { numbers.map(String.init).joined(separator: ".") }
            throw HeraldTestError(
                "\(path) is Herald \(name(version)), and these tests need \(name(HeraldBinary.oldest)) or newer: "
                    + "install a newer one, or name it with HERALD_BINARY"
            )
        }
    }

    /// The first version in a text, like `herald 0.9.0 (…)`.
    static func version(in text: String) -> [Int]? {
        guard let found = text.firstMatch(of: /(\d{1,9})\.(\d{1,9})\.(\d{1,9})/) else { return nil }
        return [found.1, found.2, found.3].compactMap { Int($0) }
    }

    private static func isProgram(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder.boolValue
            && FileManager.default.isExecutableFile(atPath: path)
    }
}
