/** Between the client's objects and the JSON of the wire: snake_case names, base64 payloads, defaults that replies leave out. */
import { fromBase64, toBase64, utf8 } from './bytes.ts'
import { optionalTimeFromWire, timeFromWire, timeToWire } from './times.ts'
import { field } from './transport.ts'
import type {
  Death,
  ImportItem,
  LeasedBatch,
  LeasedItem,
  NewItemWithKey,
  PartitionStats,
  PeekedItem,
  ProduceReceipt,
  Queue,
  QueueSettings,
  QueueStats,
  RetryItem,
  StoredItem,
} from './types.ts'

/** `queueName` as `queue_name`. */
const wireName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Text goes as text: it needs no base64, and a reader of the traffic can read it. */
function payloadToWire(payload: Uint8Array | string | undefined): { bytes?: string; utf8?: string } {
  if (payload === undefined || payload.length === 0) return {}
  return typeof payload === 'string' ? { utf8: payload } : { bytes: toBase64(payload) }
}

/** These fields under the names of the wire. Those that are `undefined` disappear when the request is written as JSON. */
const fieldsOf = <Of extends object>(of: Of, ...names: readonly (keyof Of & string)[]) =>
  Object.fromEntries(
    names.map((name) => {
      const value = of[name]
      return [wireName(name), value instanceof Date ? timeToWire(value) : (value ?? undefined)]
    }),
  )

export const settingsToWire = (settings: QueueSettings) => ({
  ...fieldsOf(settings, 'queueName', 'leaseTimeout', 'expireTimeout', 'deadQueue', 'reference'),
  ...fieldsOf(settings, 'maxAttempts', 'onDeath', 'requestedPartitions'),
})

export const newItemToWire = (item: NewItemWithKey) => ({
  ...payloadToWire(item.payload),
  ...fieldsOf(item, 'encoding', 'kind', 'reference', 'enqueueAt', 'dedupeKey'),
})

export const retryItemToWire = (item: RetryItem) =>
  fieldsOf(item, 'id', 'retryAt', 'dead', 'errorClass', 'errorMessage', 'errorStack')

export function importItemToWire(item: ImportItem) {
  const payload = typeof item.payload === 'string' ? utf8(item.payload) : item.payload
  return {
    ...fieldsOf(item, 'sourceId', 'isLeased', 'leaseDeadline', 'expireDeadline', 'attempts', 'maxAttempts'),
    ...fieldsOf(item, 'encoding', 'kind', 'reference'),
    payload: payload && toBase64(payload),
  }
}

/** Of each field how it is read: what it is where the reply leaves it out, or a function of what the reply has. */
type Reading<Read> = {
  readonly [Name in keyof Read]: Read[Name] extends string | number | boolean
    ? Read[Name]
    : (given: string | undefined) => Read[Name]
}

/** Reads an object of the wire, in which some fields may have other `names`. Types of fields are the server's promise. */
function reader<Read extends object>(
  reading: Reading<Read>,
  names: { readonly [Name in keyof Read]?: string } = {},
): (wire: unknown) => Read {
  const renamed: Readonly<Record<string, string | undefined>> = names
  // Once, and not for every item.
  const fields = Object.entries(reading).map(
    ([name, read]) => [name, renamed[name] ?? wireName(name), read] as const,
  )
  return (wire) => {
    const values = fields.map(([name, wireName, read]) => {
      const given = field(wire, wireName)
      return [name, typeof read === 'function' ? read(given) : (given ?? read)]
    })
    // Every name of the reading is there now.
    return Object.fromEntries(values) as Read
  }
}

const time = (text = ''): Date => timeFromWire(text)
const payload = (text = ''): Uint8Array => fromBase64(text)

/** The objects that a reply has as `name`. */
export const listIn = (wire: unknown, name = 'items'): readonly unknown[] => {
  const list = field(wire, name)
  return Array.isArray(list) ? list : []
}

export const queueFromWire = reader<Queue>({
  queueName: '',
  createdAt: time,
  updatedAt: time,
  leaseTimeout: '',
  expireTimeout: '',
  deadQueue: '',
  reference: '',
  maxAttempts: 0,
  requestedPartitions: 0,
  namespace: '',
})

const CONTENT = { encoding: '', kind: '', reference: '' }

const leasedFromWire = reader<LeasedItem>(
  { ...CONTENT, payload, id: '', attempts: 0, leaseDeadline: time },
  { payload: 'bytes' },
)

const placeFromWire = reader<Omit<LeasedBatch, 'items'>>({ queueName: '', partition: 0 })

export const batchFromWire = (wire: unknown): LeasedBatch => ({
  ...placeFromWire(wire),
  items: listIn(wire).map(leasedFromWire),
})

export const storedItemFromWire = reader<StoredItem>({
  ...CONTENT,
  payload,
  id: '',
  sourceId: '',
  isLeased: false,
  leaseDeadline: optionalTimeFromWire,
  expireDeadline: optionalTimeFromWire,
  createdAt: time,
  attempts: 0,
  maxAttempts: 0,
})

const deathFromWire = reader<Death>({
  queueName: '',
  partition: 0,
  reason: '',
  attempts: 0,
  createdAt: time,
  diedAt: time,
})

export const peekedItemFromWire = (wire: unknown): PeekedItem => {
  const death = field(wire, 'death')
  return { ...storedItemFromWire(wire), death: death === undefined ? null : deathFromWire(death) }
}

const receivedFromWire = reader<ProduceReceipt['items'][number]>({ outcome: 'queued', id: '' })

export const receiptFromWire = (wire: unknown): ProduceReceipt => ({
  partition: placeFromWire(wire).partition,
  items: listIn(wire).map(receivedFromWire),
})

const partitionStatsFromWire = reader<PartitionStats>({
  partition: 0,
  total: 0,
  totalLeased: 0,
  scheduled: 0,
  failures: 0,
  averageAge: '0s',
  averageLeasedAge: '0s',
})

const waitingFromWire = reader<Omit<QueueStats, 'queueName' | 'partitions'>>({
  produceWaiting: 0,
  leaseWaiting: 0,
  completeWaiting: 0,
  inFlight: 0,
})

/** The server describes each queue as one logical queue. */
export function statsFromWire(wire: unknown): QueueStats {
  const [logical] = listIn(wire, 'logicalQueues')
  return {
    queueName: placeFromWire(wire).queueName,
    ...waitingFromWire(logical),
    partitions: listIn(logical, 'partitions').map(partitionStatsFromWire),
  }
}
