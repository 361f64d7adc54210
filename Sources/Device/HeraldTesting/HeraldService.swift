import Foundation
import HeraldDevice
import HeraldModel
import HeraldPhone

/// A Herald service of a test: the `herald` binary as a process, on free ports of the loopback, with a folder of its own.
///
/// It takes part of a second to start. It ends with ``stop()``, and in any case with the test's process.
///
/// ```swift
/// try await withHerald { herald in
///     try await herald.withDevice { device in
///         let token = try await device.install("com.example.chat")
///         try await kitchen.announceDinner(to: token.hex)  // your code, which sends to herald.host and herald.apiPort
///         #expect(try await device.next().body == "Dinner is ready")
///     }
/// }
/// ```
public final class HeraldService: Sendable {
    /// The name of the service in its certificate; every listener is there.
    public let host = "localhost"
    /// The port of the provider API (HTTP/2).
    public let apiPort: Int
    /// The port of the binary interface.
    public let binaryPort: Int
    /// The port of the feedback service.
    public let feedbackPort: Int
    /// The port for devices (MQTT).
    public let devicePort: Int
    /// The port of the console: health, metrics and the admin API, without TLS.
    public let consolePort: Int
    /// The path of the authority that signed the service's certificate, PEM.
    public let authorityPath: String
    /// The data folder.
    public let data: String

    private let binary: HeraldBinary
    private let folder: String
    private let process: RunningService

    /// A service that all tests of this process share.
    ///
    /// The first call starts it; it ends with the process.
    ///
    /// Tests that run at the same time do not disturb each other if each has devices of its own. A test that moves the clock or
    /// starts a drill uses ``withHerald(options:_:)``.
    /// - Throws: ``HeraldTestError``.
    public static func shared() async throws -> HeraldService { try await common.value }

    private static let common = Task { try await HeraldService.start() }

    /// Starts a service.
    /// - Parameter options: Options of `herald serve`, like `["--clock", "adjustable"]`.
    /// - Returns: The service, which is ready.
    /// - Throws: ``HeraldTestError`` without a binary, for an old one, and if the service does not start.
    public static func start(options: [String] = []) async throws -> HeraldService {
        let binary = try HeraldBinary.find()
        let folder = try makeFolder()
        // Both at once: the version costs no time then.
        async let isNew: Void = binary.check()
        let process: Result<RunningService, any Error>
        do {
            process = .success(try await RunningService(binary, options: options, folder: folder))
        } catch {
            process = .failure(error)
        }
        // An old binary is a better explanation than what it said.
        try await isNew
        return try HeraldService(binary, folder, try process.get())
    }

    private init(_ binary: HeraldBinary, _ folder: String, _ process: RunningService) throws {
        self.binary = binary
        self.folder = folder
        self.process = process
        data = folder + "/data"
        authorityPath = data + "/ca.pem"
        guard let text = FileManager.default.contents(atPath: data + "/run/listeners.json"),
            let ports = try? JSONDecoder().decode(Ports.self, from: text)
        else {
            throw HeraldTestError("\(data)/run/listeners.json cannot be read: is \(binary.path) of this version?")
        }
        apiPort = ports.api
        binaryPort = ports.binary
        feedbackPort = ports.feedback
        devicePort = ports.device
        consolePort = ports.console
    }

    private struct Ports: Decodable {
        let api: Int
        let binary: Int
        let feedback: Int
        let device: Int
        let console: Int
    }

    /// A folder with a short path: the path of a Unix socket has 103 bytes at most.
    private static func makeFolder() throws -> String {
        let temporary = URL(fileURLWithPath: NSTemporaryDirectory()).path
        // Room for the folder's own name and for that of the longest socket in it; `/tmp` always leaves that much.
        var template = Array("\(temporary.utf8.count < 60 ? temporary : "/tmp")/herald-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw HeraldTestError("cannot make a folder in \(temporary): \(String(cString: strerror(errno)))")
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Stops the service, and deletes its folder.
    public func stop() async {
        await process.stop()
    }

    // MARK: - Commands

    /// Runs a command of `herald` on this service, like `run("journal", id, "--json")`.
    /// - Returns: What the command prints.
    /// - Throws: ``HeraldTestError`` with what it complains about, if its exit status is not 0.
    @discardableResult
    public func run(_ command: String...) async throws -> String {
        try await ChildProcess.run(binary.path, command + ["--data", data])
    }

    /// Runs `body` during a drill, like `withDrill("refuse", "--reason", "TooManyRequests", "--first", "2")`.
    ///
    /// `drill` has the kind and the options of `herald drill start`. Without `--for` it lasts as long as `body`,
    /// also if that moves the clock. If this process dies, it ends within a minute.
    /// - Throws: ``HeraldTestError``, and the error of `body`.
    public func withDrill<Result: Sendable>(
        _ drill: String...,
        body: @Sendable () async throws -> Result
    ) async throws -> Result {
        let isLease = !drill.contains { $0.hasPrefix("--for") || $0.hasPrefix("--lease") }
        let lease = isLease ? ["--lease", "60s"] : []
        let command = ["drill", "start"] + drill + lease + ["--json", "--data", data]
        let text = try await ChildProcess.run(binary.path, command)
        let number = "\(try JSONDecoder().decode(StartedDrill.self, from: Data(text.utf8)).id)"
        return try await withThrowingTaskGroup(of: Void.self) { group in
            if isLease {
                group.addTask {
                    while (try? await Task.sleep(for: .seconds(10))) != nil {
                        _ = try? await self.run("drill", "renew", number)
                    }
                }
            }
            do {
                let result = try await body()
                group.cancelAll()
                // A drill that has ended by its time is over, too.
                _ = try? await run("drill", "stop", number)
                return result
            } catch {
                group.cancelAll()
                _ = try? await run("drill", "stop", number)
                throw error
            }
        }
    }

    private struct StartedDrill: Decodable {
        let id: Int
    }

    /// Makes a key for provider tokens, which may send to these apps; to all of the team's by default.
    /// - Throws: ``HeraldTestError``.
    public func providerKey(topics: String..., team: String = "TEAM000001") async throws -> ProviderKey {
        let path = folder + "/" + UUID().uuidString
        let options = topics.flatMap { ["--topic", $0] } + ["--team", team, "--out", path, "--data", data]
        _ = try await ChildProcess.run(binary.path, ["provider", "key"] + options)
        guard let name = try? FileManager.default.contentsOfDirectory(atPath: path).first, name.hasSuffix(".p8") else {
            throw HeraldTestError("`herald provider key` has written no key into \(path)")
        }
        return ProviderKey(
            path: "\(path)/\(name)",
            pem: try HeraldService.bytes(of: "\(path)/\(name)"),
            id: String(name.dropFirst("AuthKey_".count).dropLast(".p8".count)),
            team: team
        )
    }

    /// Makes a provider's certificate, which may send to these apps.
    /// - Returns: Certificate, chain and private key, PEM.
    /// - Throws: ``HeraldTestError``.
    public func providerCertificate(topics: String...) async throws -> [UInt8] {
        let path = "\(folder)/\(UUID().uuidString).pem"
        let options = topics.flatMap { ["--topic", $0] } + ["--out", path, "--data", data]
        _ = try await ChildProcess.run(binary.path, ["provider", "certificate"] + options)
        return try HeraldService.bytes(of: path)
    }

    /// The authority that signed the service's certificate, PEM.
    /// - Throws: ``HeraldTestError``.
    public func authority() throws -> [UInt8] {
        try HeraldService.bytes(of: authorityPath)
    }

    private static func bytes(of path: String) throws -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw HeraldTestError("cannot read \(path)")
        }
        return Array(data)
    }

    // MARK: - Devices

    /// Runs `body` with a virtual device of its own, which is connected to this service.
    /// - Throws: ``HeraldTestError``, and the error of `body`.
    public func withDevice<Result: Sendable>(
        _ body: @Sendable (TestDevice) async throws -> Result
    ) async throws -> Result {
        let path = "\(folder)/\(UUID().uuidString).pem"
        try await run("device", "enroll", "--name", "test", "--out", path)
        let credential = try DeviceCredential(pem: HeraldService.bytes(of: path))
        let configuration = DeviceConfiguration(
            host: host,
            port: devicePort,
            credential: credential,
            authorities: try authority()
        )
        let agent = try DeviceAgent(
            connection: try DeviceClient(configuration),
            device: credential.id.name,
            service: "\(HostPort(host: host, port: devicePort))"
        )
        let begin = Date()
        let device = TestDevice(agent) { topic in
            await self.reasons(device: credential.id.name, topic: topic, since: begin)
        }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { await device.run() }
            return try await body(device)
        }
    }
}

extension HeraldService {
    /// Why nothing came to a device, as far as the service knows: the newest requests for it, or for nobody since it began.
    private func reasons(device: String, topic: String?, since begin: Date) async -> String {
        guard let found = try? await find("", count: 1, until: nil, wait: .zero, limit: Self.keptRequests) else {
            return "; the service does not answer"
        }
        let requests = found.items.filter {
            $0.device == device || $0.device.isEmpty && $0.time >= begin && (topic == nil || topic == $0.topic)
        }
        guard !requests.isEmpty else { return "; no request for it came to the service" }
        return "; the newest requests for it:" + requests.prefix(3).map { "\n  \($0)" }.joined()
    }
}

/// A key with which a provider signs its tokens.
public struct ProviderKey: Hashable, Sendable {
    /// The path of the `.p8` file.
    public let path: String
    /// The private key, PEM (PKCS#8).
    public let pem: [UInt8]
    /// The key's identifier (`kid`).
    public let id: String
    /// The team's identifier (`iss`).
    public let team: String
}

/// Runs `body` with a service of its own, started with options of `herald serve` like `["--clock", "adjustable"]`.
/// - Throws: ``HeraldTestError``, and the error of `body`.
public func withHerald<Result: Sendable>(
    options: [String] = [],
    _ body: @Sendable (HeraldService) async throws -> Result
) async throws -> Result {
    let herald = try await HeraldService.start(options: options)
    do {
        let result = try await body(herald)
        await herald.stop()
        return result
    } catch {
        await herald.stop()
        throw error
    }
}
