package import HeraldModel
package import HeraldNATS

/// The configuration that a stream of the log must have.
package struct StreamDefinition: Sendable {
    package let stream: LogStream
    /// Copies of each message, on as many servers: 3, or 1 for a test.
    package let replicas: Int

    package init(_ stream: LogStream, replicas: Int) {
        self.stream = stream
        self.replicas = replicas
    }

    /// The configuration of a new stream.
    ///
    /// Its sequences begin above all that an earlier stream of the name can have had: they follow the clock, and no stream
    /// takes a thousand messages in each millisecond of its life. So fences, and numbers of broadcasts that devices know,
    /// keep rising if the streams of a cluster are lost, or its data are restored.
    package func configuration(at moment: WallTime) -> StreamConfiguration {
        var configuration = StreamConfiguration(name: stream.name, subjects: [stream.subjects.text])
        configuration.storage = .file
        configuration.replicas = replicas
        configuration.discard = .old
        configuration.messagesPerSubject = stream == .broadcasts ? ClusterLimits.broadcastsPerChannel : 1
        configuration.firstSequence = Broadcast.firstNumber(at: moment)
        configuration.allowsDirectReads = true
        configuration.allowsTimeToLive = true
        configuration.deniesDelete = true
        configuration.deniesPurge = true
        return configuration
    }

    /// The differences of a stream's present configuration, in the words of the servers: "num_replicas is 1, not 3".
    package func differences(_ present: StreamConfiguration) -> [String] {
        let expected = configuration(at: WallTime(milliseconds: 0))
        var differences: [String] = []
        func compare<Value: Equatable>(_ name: String, _ path: KeyPath<StreamConfiguration, Value>) {
            guard present[keyPath: path] != expected[keyPath: path] else { return }
            differences.append("\(name) is \(present[keyPath: path]), not \(expected[keyPath: path])")
        }
        compare("subjects", \.subjects)
        compare("storage", \.storage.rawValue)
        compare("num_replicas", \.replicas)
        compare("discard", \.discard.rawValue)
        compare("max_msgs_per_subject", \.messagesPerSubject)
        compare("max_msgs", \.messages)
        compare("max_bytes", \.bytes)
        compare("max_msg_size", \.messageBytes)
        compare("max_age", \.ageNanoseconds)
        compare("allow_direct", \.allowsDirectReads)
        compare("allow_msg_ttl", \.allowsTimeToLive)
        compare("deny_delete", \.deniesDelete)
        compare("deny_purge", \.deniesPurge)
        return differences
    }
}
