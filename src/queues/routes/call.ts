/**
 * One call of the queue API: where it is, who may make it, what it takes and gives, and what it asks of the
 * queues. The table of calls is the only place that knows the paths; routes and OpenAPI are made from it.
 */
import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import type { Instant } from '../../core/clock.ts'
import type { Role } from '../../http/auth.ts'
import type { Queues } from '../queue.ts'
import { decodeMessage, type Encoded, encodeMessage, type Format } from '../wire/codec.ts'
import { ReplySchema } from '../wire/queues_pb.ts'

/** Moves a server's time; everything that comes due has happened once a move resolves. */
export interface TimeControl {
  freezeClock(at: Instant): Promise<void>
  advanceClock(us: bigint): Promise<void>
}

/** What a call works with, besides its own body. */
export interface CallScope {
  readonly queues: Queues
  /** Only when the server was started for tests. */
  readonly time: TimeControl | undefined
  /** Aborted when the client's connection closes; asking for it is what makes the connection watched. */
  signal(): AbortSignal
}

/** Writes a reply once its format is known. */
export type WriteReply = (format: Format) => Encoded

export interface QueueCall {
  readonly path: string
  readonly summary: string
  readonly role: Role
  /** The largest body in bytes; `produce` means what the configuration says. */
  readonly limit: number | 'produce'
  readonly request: DescMessage
  readonly reply: DescMessage
  /** Decodes the body, asks the queues, and says how to write the answer. */
  answer(body: Buffer, format: Format, scope: CallScope): Promise<WriteReply>
}

export type CallFacts = Pick<QueueCall, 'path' | 'summary' | 'role'> & { readonly limit?: QueueCall['limit'] }

/** The limit of calls that name no other. */
const USUAL_LIMIT = 256_000

/** The answer of calls that have nothing to tell. */
export const written: WriteReply = (format) => encodeMessage(ReplySchema, { code: 200 }, format)

/** A call whose answer is only that it was done. */
export function command<I extends DescMessage>(
  facts: CallFacts,
  request: I,
  run: (message: MessageShape<I>, scope: CallScope) => Promise<unknown>,
): QueueCall {
  return {
    limit: USUAL_LIMIT,
    ...facts,
    request,
    reply: ReplySchema,
    async answer(body, format, scope) {
      await run(decodeMessage(request, body, format), scope)
      return written
    },
  }
}

/** A call that is answered with a message of its own. */
export function question<I extends DescMessage, O extends DescMessage>(
  facts: CallFacts,
  request: I,
  reply: O,
  run: (message: MessageShape<I>, scope: CallScope) => Promise<MessageInitShape<O>>,
): QueueCall {
  return {
    limit: USUAL_LIMIT,
    ...facts,
    request,
    reply,
    async answer(body, format, scope) {
      const fields = await run(decodeMessage(request, body, format), scope)
      return (replyFormat) => encodeMessage(reply, fields, replyFormat)
    },
  }
}
