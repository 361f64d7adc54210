import Foundation
import HeraldModel

/// What an app's `Info.plist` and folder say beyond what presenting needs.
struct AppInformation: Codable, Hashable, Sendable {
    /// The bundle identifier.
    var topic: Topic
    /// The name under the icon.
    var name: String
    /// Further topics that it registers: the bundle identifier with a suffix.
    var further: [Topic] = []
    /// Where it is registered (`aps-environment`).
    var environment: PushEnvironment?
    /// What it asks the user to let it do (`HeraldNotificationTypes`).
    var wants = NotificationKind.allCases
    /// A page that is the app (`HeraldScreenURL`).
    var screenURL: String?
    /// The file of its icon.
    var icon: String?
    /// The programs that it has.
    var programs: Set<ProgramEvent> = []
    /// Whether there is a bundle.
    var hasBundle = false

    /// An app without a bundle.
    init(topic: Topic) {
        self.topic = topic
        name = topic.name
    }

    /// The topics that it registers.
    var topics: [Topic] { [topic] + further }
}

extension AppInformation {
    /// The most further topics of an app.
    static let maximumTopics = 16

    /// Reads `Info.plist` of a bundle; `programs` are looked for beside it.
    /// - Throws: ``BundleError`` with one clear line.
    init(folder: String, limits: BundleLimits) throws {
        let file = folder + "/Info.plist"
        guard BundleFile.isFolder(folder) else {
            throw BundleError(folder, "is not a folder: name the app's folder, the one that Info.plist is in")
        }
        guard FileManager.default.fileExists(atPath: file) else {
            throw BundleError(folder, "has no Info.plist: an app's folder needs one with CFBundleIdentifier")
        }
        let members = try PropertyListFile.members(
            BundleFile.read(file, limit: limits.fileBytes),
            file: file,
            limits: limits
        )
        guard let text = members["CFBundleIdentifier"]?.text, let topic = Topic(text) else {
            throw BundleError(
                file,
                "CFBundleIdentifier must be letters, digits, - and _ in parts with dots between, like com.example.app"
            )
        }
        self.init(topic: topic)
        hasBundle = true
        name = members["CFBundleDisplayName"]?.text ?? members["CFBundleName"]?.text ?? topic.name
        try readRegistration(members, file: file)
        if let text = members["HeraldScreenURL"]?.text {
            guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()), url.host != nil
            else {
                throw BundleError(file, "HeraldScreenURL must be an address like http://localhost:8080/")
            }
            screenURL = text
        }
        icon = ["AppIcon.png", "AppIcon.svg"].first { BundleFile.isPlainFile(folder + "/" + $0) }
        programs = Set(
            ProgramEvent.allCases.filter { event in
                let path = "\(folder)/Programs/\(event.rawValue)"
                return BundleFile.isPlainFile(path) && access(path, X_OK) == 0
            }
        )
    }

    private mutating func readRegistration(_ members: [String: PayloadValue], file: String) throws {
        switch members["aps-environment"]?.text {
        case nil: break
        case "production": environment = .production
        case "development": environment = .sandbox
        default: throw BundleError(file, "aps-environment must be development or production")
        }
        if let kinds = members["HeraldNotificationTypes"] {
            let read = kinds.elements?.map { $0.text.flatMap { NotificationKind(rawValue: $0) } } ?? [nil]
            guard !read.contains(nil) else {
                throw BundleError(file, "HeraldNotificationTypes must be a list of alert, badge and sound")
            }
            wants = NotificationKind.allCases.filter { read.contains($0) }
        }
        if let topics = members["HeraldTopics"] {
            let read = topics.elements?.map { $0.text.flatMap { Topic($0) } } ?? [nil]
            guard read.count <= Self.maximumTopics, read.allSatisfy({ $0?.name.hasPrefix(topic.name + ".") ?? false })
            else {
                throw BundleError(
                    file,
                    "HeraldTopics must be a list of \(Self.maximumTopics) topics at most that begin with \(topic).,"
                        + " like \(topic).voip"
                )
            }
            further = read.compactMap { $0 }
        }
    }
}
