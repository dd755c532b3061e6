/**
 * Contract 8: a request that breaks several rules is answered by the first of them. Each field of a request is
 * given a flaw or none, at random; the expected answer is that of the flaw whose rule comes first.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Path } from '../../world/messages.ts'
import { type Json, jsonCodec } from '../../world/wire.ts'
import { type Bed, promises, unique } from './bed.ts'

/** One way to write a field. `rank` is the place of the rule it breaks; none when it breaks no rule. */
interface FilterPlan {
  readonly value: Json[string] | undefined
  readonly rank?: number
  readonly text?: string
}

type Choices = Record<string, readonly FilterPlan[]>

const good = (value: Json[string] | undefined): FilterPlan => ({ value })
const flaw = (rank: number, value: Json[string] | undefined, text: string): FilterPlan => ({
  rank,
  value,
  text,
})

/** Sends random mixtures of flaws and compares the answer with that of the first rule broken. */
async function firstFlawWins(bed: Bed, path: Path, choices: Choices, runs = 150): Promise<void> {
  const fields = Object.entries(choices)
  const mixture = fc.record(
    Object.fromEntries(fields.map(([name, ways]) => [name, fc.constantFrom(...ways)] as const)),
  )
  const property = fc.asyncProperty(mixture, async (chosen) => {
    const ways = Object.entries(chosen)
    const flaws = ways.map(([, way]) => way).filter((way) => way.rank !== undefined)
    fc.pre(flaws.length > 0)
    const first = flaws.reduce((a, b) => ((b.rank ?? 0) < (a.rank ?? 0) ? b : a))
    const body: Json = {}
    for (const [name, { value }] of ways) if (value !== undefined) body[name] = value
    const { status, body: reply } = await bed.call(path, body)
    expect({ status, message: reply.message }).toEqual({
      status: first.text?.startsWith('namespace does not exist') ? 453 : 400,
      message: expect.stringContaining(first.text ?? ''),
    })
  })
  await fc.assert(property, { numRuns: runs })
}

const ID = '2AAAAAAAAAAAAAAAAAAAAAAAAAA'
const EMPTY = 'queue name is invalid; queue name cannot be empty'

const lookup = (queue: string): readonly FilterPlan[] => [
  good(queue),
  good(queue),
  flaw(1, '', EMPTY),
  flaw(1, ' ', EMPTY),
  flaw(1, 'a~b', "queue name is invalid; 'a~b' cannot contain '~' character"),
  flaw(1, ' ~', "queue name is invalid; ' ~' cannot contain '~' character"),
  flaw(1, 'nowhere', "queue does not exist; no such queue named 'nowhere'"),
]

const REQUIRED = "request timeout is required; '5m' is recommended, 15m is the maximum"
const MALFORMED = 'request timeout is invalid; time: invalid duration "x" - expected format: 900ms, 5m or 15m'
const tooLong = (given: string) =>
  `request timeout is invalid; maximum timeout is '15m' but '${given}' was requested`
const tooShort = (given: string) =>
  `request timeout is invalid; minimum timeout is '10ms' but '${given}' was requested`

const partition: readonly FilterPlan[] = [
  good(0),
  good(undefined),
  flaw(1.5, 1, "partition is invalid; '1' is not a valid partition"),
]

promises(
  'the order of validation',
  (bed) => {
    it('of produce', async () => {
      const queue = await bed.queue()
      await firstFlawWins(bed, '/v1/queue.produce', {
        queue_name: lookup(queue),
        request_timeout: [
          good('1m'),
          flaw(2, 'x', MALFORMED),
          flaw(3, '', REQUIRED),
          flaw(3, '0s', REQUIRED),
          flaw(4, '15m', tooLong('15m0s')),
          flaw(5, '10ms', tooShort('10ms')),
        ],
        items: [
          good([{}]),
          flaw(6, [], 'items cannot be empty; at least one item is required'),
          flaw(
            7,
            Array.from({ length: 1001 }, () => ({})),
            'items is invalid; max_produce_batch_size is 1000 but received 1001',
          ),
        ],
      })
    })

    it('of lease', async () => {
      const queue = await bed.queue()
      const client_id = unique('client')
      const waiting = bed.startLease(queue, 1, { client_id })
      await bed.untilWaiting(queue, 1)
      await firstFlawWins(bed, '/v1/queue.lease', {
        queue_name: lookup(queue),
        request_timeout: [
          good('1m'),
          flaw(2, 'x', MALFORMED),
          flaw(6, undefined, REQUIRED),
          flaw(7, '15.1m', tooLong('15m6s')),
          flaw(7.5, '10ms', tooShort('10ms')),
        ],
        client_id: [
          flaw(3, '', 'invalid client id; cannot be empty'),
          flaw(3, '  ', 'invalid client id; cannot be empty'),
          flaw(
            8,
            client_id,
            'duplicate client id; a client cannot make multiple leased requests to the same queue',
          ),
        ],
        batch_size: [
          good(1),
          flaw(4, 0, 'invalid batch size; must be greater than zero'),
          flaw(5, 1001, 'invalid batch size; max_lease_batch_size is 1000, but 1001 was requested'),
        ],
      })
      waiting.abort()
    })

    it('of complete', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'idle')
      const idle = (await bed.items(queue))[0]?.id ?? ''
      await firstFlawWins(bed, '/v1/queue.complete', {
        queue_name: lookup(queue),
        partition,
        request_timeout: [
          good('1m'),
          good('15m'),
          flaw(2, 'x', MALFORMED),
          flaw(5, '16m', tooLong('16m0s')),
          flaw(5.5, '', REQUIRED),
          flaw(5.5, '0ms', REQUIRED),
        ],
        ids: [
          flaw(3, [], 'ids is invalid; list of ids cannot be empty'),
          flaw(
            4,
            Array.from({ length: 1001 }, () => 'x'),
            'ids is invalid; max_complete_batch_size is 1000 but received 1001',
          ),
          flaw(6, ['x'], "invalid storage id; 'x': Valid encoded KSUIDs are 27 characters"),
          flaw(7, [ID], `invalid storage id; '${ID}' does not exist`),
          flaw(8, [idle], `item(s) cannot be completed; '${idle}' is not marked as leased`),
        ],
      })
    })

    it('of retry', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'idle')
      const idle = (await bed.items(queue))[0]?.id ?? ''
      await firstFlawWins(bed, '/v1/queue.retry', {
        queue_name: lookup(queue),
        partition,
        items: [
          flaw(3, [], 'items is invalid; list of items cannot be empty'),
          flaw(
            4,
            Array.from({ length: 1001 }, () => ({ id: 'x' })),
            'items is invalid; max_complete_batch_size is 1000 but received 1001',
          ),
          flaw(6, [{ id: 'x' }], "invalid storage id; 'x': Valid encoded KSUIDs are 27 characters"),
          flaw(7, [{ id: ID }], `invalid storage id; '${ID}' does not exist`),
          flaw(8, [{ id: idle }], `item(s) cannot be retried; '${idle}' is not marked as leased`),
        ],
      })
    })

    const settings = (queue: string, target: string, chained: string): Choices => ({
      lease_timeout: [
        good('1m'),
        flaw(2, '1234567890123456', "lease timeout is invalid; cannot be greater than '15' characters"),
        flaw(
          5,
          '5',
          'lease timeout is invalid; time: missing unit in duration "5" - expected format: 8m, 15m or 1h',
        ),
      ],
      expire_timeout: [
        good('1h'),
        flaw(3, '1234567890123456', "expire timeout is invalid; cannot be greater than '15' characters"),
        flaw(
          4,
          '5',
          'expire timeout is invalid; time: missing unit in duration "5" - expected format: 60m, 2h or 24h',
        ),
        flaw(17, '30s', 'lease timeout is too long; 1m0s cannot be greater than the expire timeout 30s'),
      ],
      namespace: [
        good(undefined),
        good('_system'),
        flaw(6, 'n'.repeat(257), "namespace name is invalid; cannot be greater than '256' characters"),
        flaw(6, ' ', 'namespace name is invalid; cannot be empty'),
        flaw(6, 'a ~:', "namespace name is invalid; 'a ~:' cannot contain whitespace"),
        flaw(6, 'a~:', "namespace name is invalid; 'a~:' cannot contain '~' character"),
        flaw(6, 'a:', "namespace name is invalid; 'a:' cannot contain ':' character"),
      ],
      dead_queue: [
        good(undefined),
        good(target),
        flaw(9, 'd ~'.padEnd(501, 'd'), "dead queue is invalid; cannot be greater than '500' characters"),
        flaw(9, 'd ~', "dead queue is invalid; 'd ~' cannot contain whitespace"),
        flaw(9, 'd~', "dead queue is invalid; 'd~' cannot contain '~' character"),
        flaw(9, queue, 'dead_queue cannot reference itself'),
        flaw(9, 'nowhere', "dead_queue does not exist; 'nowhere' was not found, create it first"),
        flaw(9, chained, `dead_queue is invalid; '${chained}' already has its own dead_queue configured`),
      ],
      reference: [
        good(undefined),
        flaw(10, 'r'.repeat(2001), "reference field is invalid; cannot be greater than '2000' characters"),
      ],
      max_attempts: [
        good(0),
        flaw(11, 65_537, 'max attempts is invalid; cannot be greater than 65536'),
        flaw(12, -1, 'max attempts is invalid; cannot be negative number'),
      ],
    })

    it('of create', async () => {
      const existing = await bed.queue()
      const target = await bed.queue()
      const chained = await bed.queue({ dead_queue: target })
      const fresh = unique()
      const shared = settings(fresh, target, chained)
      await firstFlawWins(
        bed,
        '/v1/queues.create',
        {
          ...shared,
          // Always flawed at the end, so that no queue is ever created.
          requested_partitions: [flaw(13, 0, 'partitions is invalid; cannot be less than 1')],
          queue_name: [
            good(fresh),
            good(fresh),
            flaw(1, ' ~'.padEnd(513, 'x'), "queue name is invalid; cannot be greater than '512' characters"),
            flaw(1, ' ', EMPTY),
            flaw(1, 'a ~', "queue name is invalid; 'a ~' cannot contain whitespace"),
            flaw(1, 'a~', "queue name is invalid; 'a~' cannot contain '~' character"),
            flaw(8, existing, `invalid queue; '${existing}' already exists`),
          ],
          namespace: [
            ...(shared.namespace ?? []),
            flaw(7, 'other', "namespace does not exist; 'other' was not found"),
          ],
        },
        400,
      )
    })

    it('of create, in its last rules', async () => {
      const fresh = unique()
      await firstFlawWins(bed, '/v1/queues.create', {
        queue_name: [good(fresh)],
        requested_partitions: [good(1), flaw(13, -1, 'partitions is invalid; cannot be less than 1')],
        max_attempts: [good(1), flaw(12, -1, 'max attempts is invalid; cannot be negative number')],
        lease_timeout: [flaw(14, '', 'lease timeout is invalid; cannot be empty')],
        expire_timeout: [good('1h'), flaw(15, '0s', 'expire timeout is invalid; cannot be empty')],
      })
    })

    it('of update', async () => {
      const target = await bed.queue()
      const chained = await bed.queue({ dead_queue: target })
      const queue = await bed.queue({ lease_timeout: '1m' })
      await firstFlawWins(
        bed,
        '/v1/queues.update',
        {
          ...settings(queue, target, chained),
          requested_partitions: [
            good(0),
            good(3),
            flaw(13, -1, 'partitions is invalid; cannot be less than 1'),
          ],
          queue_name: [
            good(queue),
            good(queue),
            flaw(1, ' ~'.padEnd(513, 'x'), "queue name is invalid; cannot be greater than '512' characters"),
            flaw(1, ' ', EMPTY),
            flaw(1, 'a ~', "queue name is invalid; 'a ~' cannot contain whitespace"),
            flaw(1, 'a~', "queue name is invalid; 'a~' cannot contain '~' character"),
            flaw(8, 'nowhere', "queue does not exist; no such queue named 'nowhere'"),
          ],
        },
        400,
      )
    })

    it('of the storage lists', async () => {
      const queue = await bed.queue()
      for (const path of ['/v1/storage/items.list', '/v1/storage/scheduled.list'] as const) {
        await firstFlawWins(bed, path, {
          queue_name: lookup(queue),
          partition,
          pivot: [
            good(''),
            good(ID),
            flaw(2, 'x', "invalid storage id; 'x': Valid encoded KSUIDs are 27 characters"),
          ],
          limit: [good(0), flaw(3, -1, 'limit is invalid; limit cannot be negative')],
        })
      }
    })

    it('of items.import and items.delete', async () => {
      const queue = await bed.queue()
      await firstFlawWins(bed, '/v1/storage/items.import', {
        queue_name: lookup(queue),
        partition,
        items: [flaw(2, [], 'items is invalid; cannot be empty')],
      })
      await firstFlawWins(bed, '/v1/storage/items.delete', {
        queue_name: lookup(queue),
        partition,
        ids: [
          flaw(2, [], 'ids is invalid; cannot be empty'),
          flaw(3, [ID, 'x'], "invalid storage id; 'x': Valid encoded KSUIDs are 27 characters"),
        ],
      })
    })
  },
  { codecs: [jsonCodec] },
)
