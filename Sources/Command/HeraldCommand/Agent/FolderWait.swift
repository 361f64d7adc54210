import HeraldDevice
import HeraldService

/// The wait for a device's folder, which agents and commands use one at a time.
struct FolderWait: Sendable {
    /// The longest wait: a command uses the folder for some milliseconds, an agent that ends for a second or two.
    static let limit = Duration.seconds(5)
    /// The time between two attempts.
    static let pause = Duration.milliseconds(50)

    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Repeats `body` while it throws ``DeviceError/Code/folderInUse``, up to the limit.
    func untilFree<Result>(_ body: () async throws -> Result) async throws -> Result {
        for _ in 0..<Int(Self.limit / Self.pause) {
            do {
                return try await body()
            } catch let error as DeviceError where error.code == .folderInUse {
                try await sleep(Self.pause)
            }
        }
        return try await body()
    }
}
