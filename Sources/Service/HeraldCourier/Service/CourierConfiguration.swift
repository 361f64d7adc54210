package import HeraldModel

/// The topics that devices may register.
package enum DeviceTopics: String, CaseIterable, Sendable {
    case any
    /// Topics that a credential names or that a team owns.
    case known
}

/// The limits of the courier; each with its unit, its default and the reason for it.
package struct CourierConfiguration: Sendable {
    /// The environment of devices that connect by a server name which names none.
    package var environment: PushEnvironment = .production
    /// The host, with or without port, to which devices are sent instead of being served; empty to serve them.
    package var movedTo = ""
    /// From the end of the TLS handshake to the whole CONNECT.
    ///
    /// 5 s: a device has nothing to think about.
    package var connectTimeout: Duration = .seconds(5)
    /// Bytes of the largest CONNECT.
    ///
    /// 8 KiB: room for a will and user properties, and little to hold for a stranger.
    package var maximumConnectBytes = 8 * 1024
    /// Bytes of the largest packet after it; announced in MQTT 5.
    ///
    /// 64 KiB: a SUBSCRIBE for several hundred apps.
    package var maximumPacketBytes = 64 * 1024
    /// The longest keep alive, and what replaces one of 0 (MQTT 5 §3.1.2.10).
    ///
    /// 30 min: a phone's radio may sleep, and a dead connection is found within three quarters of an hour.
    package var longestKeepAlive: Duration = .seconds(30 * 60)
    /// The longest that an MQTT session outlives its connection.
    ///
    /// 30 days, as long as anything is stored.
    package var longestSession: Duration = .seconds(30 * 86_400)
    /// The topics that devices may register; registrations that are there stay.
    package var deviceTopics = DeviceTopics.any
    /// Time from CONNECT in which a device has to present the token of each app that it subscribes to.
    ///
    /// Later, an app's notifications wait until the device has presented its token. Nil: tokens are not required, because a
    /// plain MQTT client cannot present one by itself. 10 s is a good value: a device that knows its tokens presents them with
    /// SUBSCRIBE, or a round trip later.
    package var tokenGrace: Duration?
    /// Notifications in flight to one device at the most, whatever receive maximum it names.
    ///
    /// 128: the post office hands over nothing further.
    package var largestWindow = 128
    /// Notifications in flight to a 3.1.1 device, which cannot name a receive maximum.
    ///
    /// 20, as mosquitto.
    package var windowWithoutReceiveMaximum = 20
    /// Messages of a device that may wait for their PUBACK; announced in MQTT 5 as Receive Maximum.
    package var receiveMaximum: UInt16 = 16
    /// SUBSCRIBE, UNSUBSCRIBE and PUBLISH packets of one device that wait.
    ///
    /// Past it nothing is read from the device until one is done.
    package var waitingOperations = 32
    /// Apps and channels that one session may be subscribed to; past it SUBACK says 0x97.
    package var subscriptionsPerSession = 500
    /// Topic filters in one SUBSCRIBE or UNSUBSCRIBE; past it each is refused, and none is read.
    ///
    /// Twice as many as a session may have: an app's notifications and its token.
    var filtersPerPacket: Int { 2 * subscriptionsPerSession }
    /// Messages that wait for one device; past it the connection ends with 0x97.
    ///
    /// Four times the subscriptions: a token for each app, a broadcast for each channel and the post office's notifications
    /// need less than half.
    var queuedMessages: Int { 4 * subscriptionsPerSession }
    /// Bytes written to a device and not yet taken by it.
    ///
    /// Past it nothing more is written, and nothing read from the device.
    package var outboundBytes = 64 * 1024
    /// Time in which a device has to take something of what is written to it.
    ///
    /// 30 s: a phone in a tunnel.
    package var writeTimeout: Duration = .seconds(30)
    /// Takeovers of one device within a minute.
    ///
    /// Two copies of one certificate take over from each other without end. Past the limit the newer connection is refused
    /// for the rest of the minute, and the log says so.
    package var takeoversPerMinute = 10
    /// Devices of a cluster's node that arrive at once, from CONNECT until their session and their mailbox are read.
    ///
    /// 64: at 5 ms for an arrival they are 12,000 a second, more than a node does TLS handshakes for. Those of ten nodes keep
    /// the NATS servers busy for 0.1 s, which is how long a notification waits behind them.
    package var arrivalsUnderWay = 64
    /// The time after which a device that waits for its turn is refused with 0x89, and comes again.
    ///
    /// 5 s: many clients give up after 10 s.
    package var longestArrivalWait: Duration = .seconds(5)
    /// The age of a CONNECT past which its client has probably given up: it is refused, and takes nothing over.
    ///
    /// 10 s: many clients give up then. It is longer than ``longestArrivalWait``.
    package var connectPatience: Duration = .seconds(10)
    /// Interval between checks for connections whose certificate has expired.
    package var expirySweep: Duration = .seconds(10)
    /// Connections in a second whose devices are sent new tokens, after the token key has changed.
    ///
    /// 500: a device with many apps is sent hundreds of packets, and each makes an app call its provider.
    package var tokenRenewalsPerSecond = 500
    /// Time between the change and the first new token: tokens that were sealed before have left by then.
    package var tokenRenewalDelay: Duration = .seconds(1)
    /// Time in which devices have to take their DISCONNECT and close, when the service stops.
    package var stopTimeout: Duration = .seconds(2)
    /// Unacknowledged notifications of devices that went away with a session, remembered in memory.
    ///
    /// They are sent again under their packet identifier, marked as duplicates ([MQTT-4.4.0-1]). Past it, and after a restart, they are sent as if for the first time. 100,000: some 5 MB.
    package var rememberedDuplicates = 100_000

    package init() {}
}
