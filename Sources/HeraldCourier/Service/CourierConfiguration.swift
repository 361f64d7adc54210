package import HeraldModel

/// The limits of the courier; each with its unit, its default and the reason for it.
package struct CourierConfiguration: Sendable {
    /// The environment of devices that connect by a name which says nothing about it.
    package var environment: PushEnvironment = .production
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
    /// 20 min: a phone's radio may sleep, and a dead connection is found within half an hour.
    package var longestKeepAlive: Duration = .seconds(20 * 60)
    /// The longest that an MQTT session outlives its connection.
    ///
    /// 30 days, as long as anything is stored.
    package var longestSession: Duration = .seconds(30 * 86_400)
    /// Notifications in flight to one device at the most, whatever receive maximum it names.
    ///
    /// 128: the post office hands over no more.
    package var largestWindow = 128
    /// Notifications in flight to a 3.1.1 device, which cannot name a receive maximum.
    ///
    /// 20, as mosquitto.
    package var windowWithoutReceiveMaximum = 20
    /// Messages of a device that may wait for their PUBACK; announced in MQTT 5 as Receive Maximum.
    package var receiveMaximum: UInt16 = 16
    /// SUBSCRIBE, UNSUBSCRIBE and PUBLISH packets of one device that wait to be carried out.
    ///
    /// Past it nothing is read from the device until one is done.
    package var waitingOperations = 32
    /// Apps and channels that one session may be subscribed to; past it SUBACK says 0x97.
    package var subscriptionsPerSession = 500
    /// Bytes written to a device and not yet taken by it, past which no more is written, and nothing read from it.
    package var outboundBytes = 64 * 1024
    /// How long a device may take nothing of what is written to it.
    ///
    /// 30 s: a phone in a tunnel.
    package var writeTimeout: Duration = .seconds(30)
    /// How often within a minute a device may evict its own older connection.
    ///
    /// Two copies of one certificate evict each other without end; past this the newer is refused for the rest of the
    /// minute, and the operator told.
    package var takeoversPerMinute = 10
    /// How often connections whose certificate has expired are looked for.
    package var expirySweep: Duration = .seconds(10)
    /// Connections in a second whose devices are sent new tokens, after the token key has changed.
    ///
    /// 500: a device with many apps is sent hundreds of packets, and each of them makes its app call its provider.
    package var tokenRenewalsPerSecond = 500
    /// How long after the change the first of them is sent its own: whatever was sealed before has left by then.
    package var tokenRenewalDelay: Duration = .seconds(1)
    /// How long the devices have, when the service stops, to take their DISCONNECT and close.
    package var farewell: Duration = .seconds(2)
    /// Notifications that were sent and not acknowledged, of devices that went away with a session: remembered in
    /// memory so that they are sent again under their packet identifier, marked as duplicates ([MQTT-4.4.0-1]).
    ///
    /// Past it, and after a restart, they are sent again as if for the first time. 100,000: some 5 MB.
    package var rememberedDuplicates = 100_000

    package init() {}
}
