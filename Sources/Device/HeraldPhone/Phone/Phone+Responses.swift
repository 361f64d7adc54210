/// The user's responses to notifications, for an app on the local socket.
extension Phone {
    /// Tells an app that the user opened it by a notification, or pressed a button.
    ///
    /// An app that was on the socket and is away hears of it when it registers again.
    mutating func respond(
        to arrival: PhoneState.Arrival,
        _ index: Int,
        action: String? = nil,
        text: String? = nil
    ) -> [PhoneEffect] {
        guard !connectedApps.contains(state.apps[index].topic), state.apps[index].unheard != nil else {
            return [response(PhoneState.Response(arrival: arrival, action: action, text: text), index)]
        }
        state.apps[index].unheard?.append(PhoneState.Response(arrival: arrival, action: action, text: text))
        let excess = (state.apps[index].unheard?.count ?? 0) - limits.unheardResponses
        if excess > 0 { state.apps[index].unheard?.removeFirst(excess) }
        return []
    }

    /// Tells an app that has registered what it has not heard.
    mutating func catchUp(_ index: Int) -> [PhoneEffect] {
        let responses = state.apps[index].unheard ?? []
        state.apps[index].unheard = []
        return responses.map { response($0, index) }
    }

    private func response(_ response: PhoneState.Response, _ index: Int) -> PhoneEffect {
        message(
            response.action == nil ? .opened : .action,
            response.arrival,
            index,
            action: response.action,
            text: response.text
        )
    }
}
