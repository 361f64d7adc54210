import HeraldJSON
import HeraldModel

/// News for an app: its token, its permission and the user's languages.
extension Phone {
    /// Tells an app on the local socket, and the app's program that has the name of the event.
    mutating func tell(_ index: Int, _ message: AppMessage, _ now: WallTime) -> [PhoneEffect] {
        [.notifyApp(state.apps[index].topic, message)] + runProgram(for: message, of: index, now)
    }

    /// Runs the program for a piece of news; an app that the user ended is not started.
    mutating func runProgram(for message: AppMessage, of index: Int, _ now: WallTime) -> [PhoneEffect] {
        guard let news = message.news, state.apps[index].state != .endedByUser else { return [] }
        return run(news.event, of: index, nil, news: news.members, now)
    }

    /// Runs the program for each device token of an app that may not have heard of it: the app was installed again, or
    /// starts after the user had ended it.
    mutating func repeatTokens(_ index: Int, _ now: WallTime) -> [PhoneEffect] {
        tokens(index).flatMap { runProgram(for: $0, of: index, now) }
    }

    /// The device tokens of an app, by topic.
    func tokens(_ index: Int) -> [AppMessage] {
        state.apps[index].tokens.sorted { $0.key < $1.key }
            .compactMap { name, token in Topic(name).map { .token($0, token) } }
    }
}

extension AppMessage {
    /// The event and its members, the same on the local socket and for a program of that name; nil for others.
    var news: (event: ProgramEvent, members: JSON.Object)? {
        func kinds(_ kinds: [NotificationKind]) -> JSON { .array(kinds.map { .string($0.rawValue) }) }
        switch self {
        case .permission(let topic, let granted):
            return (.permission, ["topic": .string(topic.name), "granted": kinds(granted)])
        case .settings(let topic, let granted):
            return (.settings, ["topic": .string(topic.name), "granted": kinds(granted)])
        case .token(let topic, let token):
            return (.token, ["topic": .string(topic.name), "token": .string(token)])
        case .refused(let topic, let reason):
            return (.refused, ["topic": .string(topic.name), "reason": .string(reason)])
        case .languages(let languages):
            return (.languages, ["languages": .array(languages.map { .string($0) })])
        case .notification, .channel: return nil
        }
    }
}
