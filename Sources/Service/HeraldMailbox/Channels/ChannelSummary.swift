package import HeraldModel

extension ChannelService {
    package struct Summary: Sendable {
        package let channel: BroadcastChannel
        package let app: App
        package let feed: ChannelFeed
        package let hasStoredMessage: Bool

        init(_ entry: ChannelDirectory.Entry) {
            channel = entry.channel
            app = entry.app
            feed = entry.feed
            hasStoredMessage = entry.newest != nil
        }
    }
}
