/** Posting over kept connections. */
import type { Answer } from './answer.ts'
import type { Connections } from './connections.ts'
import { type ExchangeTerms, exchange, type Posting, wasCut } from './exchange.ts'

export type PostTerms = Omit<ExchangeTerms, 'onEnd'>

/** Posts and gives the answer; rejects when there is none, or with the signal's reason when it is aborted before there is a connection. */
export function post(connections: Connections, posting: Posting, terms: PostTerms): Promise<Answer> {
  return postOver(connections, posting, terms, false)
}

async function postOver(
  connections: Connections,
  posting: Posting,
  terms: PostTerms,
  fresh: boolean,
): Promise<Answer> {
  const connection = await connections.take(terms.signal, { fresh })
  const onEnd = (isSound: boolean): void => connections.giveBack(connection, isSound)
  try {
    return await exchange(connection, posting, { ...terms, onEnd })
  } catch (error) {
    if (!connection.wasKept || !wasCut(error)) throw error
    // The receiver closed the connection, most often for want of use, just when it was used again. A message can be sent
    // twice; so it is, at once, and does not wait for its next attempt.
    return postOver(connections, posting, terms, true)
  }
}
