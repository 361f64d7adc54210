package import HeraldModel
import Logging
import Synchronization

/// Names of apps, and their numbers.
extension Registry {
    /// Calls `body` with the number of an app, a new one for a new app; the app is not forgotten meanwhile.
    /// - Throws: ``RegistrationRefusal`` of a new app, or if the store or `body` fails.
    package func withNumber<Value: Sendable>(
        of app: App,
        for origin: AppOrigin?,
        _ body: (AppNumber) async throws -> Value
    ) async throws -> Value {
        let now = clock.now()
        let pin = numbers.withLock { $0.apps.pin(app, for: origin, now: now) }
        switch pin {
        case .refused(let refusal, let isFirst):
            if isFirst { log(refusal, origin) }
            throw refusal
        case .busy: throw BeingForgotten()
        case .known, .new: break
        }
        defer { numbers.withLock { $0.apps.unpin(app) } }
        if case .known(let number) = pin { return try await body(number) }
        let number = try await store.number(of: app, for: origin, at: now)
        changed(.app(AppRecord(app: app, number: number, origin: origin, created: now)))
        return try await body(number)
    }

    private struct BeingForgotten: Error, CustomStringConvertible {
        var description: String { "the app is being forgotten at this moment" }
    }

    private func log(_ refusal: RegistrationRefusal, _ origin: AppOrigin?) {
        if refusal == .tooManyNewNames, let origin {
            return logger.notice(
                "new app names are refused: as many as one device or team may bring, in all or within a day",
                metadata: ["by": "\(name(origin))"]
            )
        }
        let (count, largest) = numbers.withLock { ($0.apps.count, $0.apps.largest(5)) }
        let names = largest.map { "\(name($0.origin)): \($0.names)" }.joined(separator: ", ")
        logger.warning(
            "new app names are refused: the service knows as many as it may; forget some with `herald app forget`",
            metadata: ["names": "\(count)", "most": "\(names)"]
        )
    }

    private func name(_ origin: AppOrigin) -> String {
        switch origin {
        case .device(let number): "device \(device(number)?.name ?? "#\(number.value)")"
        case .team(let team): "team \(team)"
        }
    }

    // MARK: - For operators

    /// The use of an app, or of all, by topic and environment.
    /// - Throws: If the store cannot be read.
    package func appUsages() async throws -> [AppUsage] {
        try await store.appUsages(nil)
    }

    /// Forgets an app that no device has registered and that has no channel.
    ///
    /// Its number stays retired.
    /// - Returns: The app's use, with which it is or is not forgotten; nil if there is no such app, or work on it is under way.
    /// - Throws: If the store fails; what is left of the app can be forgotten later.
    package func forget(_ app: App) async throws -> AppUsage? {
        guard let number = numbers.withLock({ $0.apps.beginForgetting(app) }) else { return nil }
        defer { numbers.withLock { $0.apps.endForgetting(app) } }
        let usage = try await store.appUsages(number).first
        guard let usage, usage.isUnused else { return usage }
        for slot in try await store.forgetApp(number, at: clock.now()) { changed(.registrationForgotten(slot)) }
        changed(.appForgotten(usage.record))
        return usage
    }
}
