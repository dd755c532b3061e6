/**
 * The way back of letters that came from an outbox: their row is still there and starts over. In the office's own store
 * that is part of the transaction that claims the letter. In another database it is done there first: when the office's
 * transaction fails after that, the clerk (clerk.ts) makes row and letter agree again.
 *
 * While a letter is pending its row is dead. When it is discarded or expires the row is given up, so that it no longer
 * holds what waits behind it; when it is restored the row is dead again.
 */
import { isUtf8 } from 'node:buffer'
import { failure } from '../../core/errors.ts'
import { type Session, StoreUnavailable, type Transaction } from '../../db/database.ts'
import type {
  Edit,
  Letter,
  LocalLetterSource,
  Outgoing,
  Placed,
  Recall,
  SendReceipt,
} from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { keepsBytes, keepsJson, type Layout } from '../layout.ts'
import type { OutboxPost } from '../post.ts'
import { type LetterRows, letterRowsOf, type OutboxRow } from '../sql/letters.ts'
import type { OutboxPosts } from './clerk.ts'
import { knownLayout, learnLayout } from './known-layouts.ts'
import { OUTBOX, type OutboxAndRow, rowOf, rowsOf } from './rows-of-letters.ts'

/** Who wants to hear of what is done to rows, once it is durable. */
export interface SourceListeners {
  /** Messages of this outbox are due now. */
  dispatch(outbox: string): void
  /** The clerk has something to compare. */
  tell(outbox: string): void
}

/** The source of letters that come from these outboxes. */
export const outboxLetterSource = (posts: OutboxPosts, listeners: SourceListeners): LocalLetterSource => ({
  name: OUTBOX,
  render: (tx, letter, edit) => render(posts, tx, letter, edit),
  send: (work, outgoing) => send(posts, work, outgoing, listeners),
  recall: (work, letter) => recall(posts, work, letter, listeners),
  lift: (work, letters) =>
    moveAll(posts, work, letters, listeners, (tx, rows, these) => rows.giveUp(tx, these, work.now)),
  lay: (work, letters) =>
    moveAll(posts, work, letters, listeners, (tx, rows, these) => rows.layBack(tx, these)),
})

/** Runs `act` where the rows are: in the office's transaction, or in one of their own database. */
async function atRows<T>(
  post: OutboxPost,
  tx: Transaction,
  verb: string,
  act: (tx: Transaction, rows: LetterRows, layout: Layout) => Promise<T>,
): Promise<T> {
  if (post.inStore) {
    const layout = knownLayout(post)
    return act(tx, letterRowsOf(layout), layout)
  }
  try {
    const layout = await learnLayout(post)
    return await post.db.transaction(verb, (there) => act(there, letterRowsOf(layout), layout))
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    throw failure('letter_outbox_away', { outbox: post.name }, { cause: error })
  }
}

function postOf(posts: OutboxPosts, outbox: string): OutboxPost {
  const post = posts.all().find(({ name }) => name === outbox)
  if (post === undefined) throw failure('letter_outbox_unknown', { outbox })
  return post
}

async function render(
  posts: OutboxPosts,
  tx: Transaction,
  letter: Letter,
  edit: Edit | null,
): Promise<Outgoing> {
  const place = rowOf(letter)
  const payload = edit?.payload ?? letter.editedPayload ?? letter.payload
  await atRows(postOf(posts, place.outbox), tx, 'outbox.render', async (there, rows, layout) => {
    await rowAt(place, (ids) => rows.read(there, ids))
    insistOnForm(layout, payload)
  })
  return {
    letterId: letter.id,
    queue: place.outbox,
    encoding: letter.encoding,
    kind: letter.kind,
    reference: letter.reference,
    payload,
    correlationId: letter.correlationId,
    idempotencyKey: `${letter.id}-${letter.version}`,
  }
}

/** The row of a letter; refuses when it is gone, also when another message has its id by now. */
async function rowAt(
  { outbox, id, key }: OutboxAndRow,
  read: (ids: readonly string[]) => Promise<readonly OutboxRow[]>,
): Promise<OutboxRow> {
  const [row] = await read([id])
  if (row === undefined || row.key !== key) throw failure('letter_row_gone', { outbox, id })
  return row
}

/** Refuses a payload that the table cannot keep. */
function insistOnForm(layout: Layout, payload: Uint8Array): void {
  const reason = formProblem(layout, payload)
  if (reason !== null) throw failure('parameter_invalid', { parameter: 'payload', reason })
}

function formProblem(layout: Layout, payload: Uint8Array): string | null {
  if (keepsBytes(layout)) return null
  if (!isUtf8(payload)) return 'its outbox keeps text, and this is no UTF-8'
  const text = Buffer.from(payload).toString('utf8')
  if (text.includes('\0')) return 'its outbox keeps text without the null character'
  if (!keepsJson(layout)) return null
  try {
    JSON.parse(text)
    return null
  } catch {
    return 'its outbox keeps JSON, and this is none'
  }
}

async function send(
  posts: OutboxPosts,
  work: OfficeWork,
  outgoing: Outgoing,
  { dispatch }: SourceListeners,
): Promise<SendReceipt> {
  const { letterId, payload } = outgoing
  const [place] = await rowsOf(work.tx, [letterId])
  if (place === undefined) throw new Error(`letter ${letterId} is gone although it was locked`)
  const { outbox } = place
  const id = await atRows(postOf(posts, outbox), work.tx, 'outbox.send', async (tx, rows) => {
    const row = await rowAt(place, (ids) => rows.lock(tx, ids))
    const isSame = Buffer.from(row.payload).equals(payload)
    if (isUnderWay(row) && isSame) return row.id
    if (isUnderWay(row) && isClaimed(row, work)) throw failure('letter_in_flight', { queue: outbox })
    await rows.startOver(tx, row, letterId, isSame ? null : payload)
    return row.id
  })
  work.afterCommit(() => dispatch(outbox))
  return { messageId: id, queue: outbox }
}

/**
 * Whether it was sent back already, by an earlier try whose record was lost: it waits to be delivered, or was, and the
 * office does not know yet. To start it over would deliver it twice.
 */
const isUnderWay = ({ deadAt, isProcessed, letterDue }: OutboxRow): boolean =>
  deadAt === null && (!isProcessed || letterDue)

/** Whether a dispatcher has it in its hands. */
const isClaimed = ({ claimedUntil }: OutboxRow, { now }: OfficeWork): boolean =>
  claimedUntil !== null && claimedUntil > now

async function recall(
  posts: OutboxPosts,
  work: OfficeWork,
  letter: Letter,
  { tell }: SourceListeners,
): Promise<Recall> {
  const place = rowOf(letter)
  const { outbox, id } = place
  const recalled = await atRows(
    postOf(posts, outbox),
    work.tx,
    'outbox.recall',
    async (tx, rows): Promise<Recall> => {
      const [row] = await rows.lock(tx, [id])
      if (row === undefined || row.key !== place.key || row.isProcessed) return { outcome: 'gone' }
      if (isClaimed(row, work)) return { outcome: 'running' }
      if (row.deadAt === null) await rows.takeBack(tx, row, letter.id, work.now)
      return { outcome: 'recalled', attempts: row.retryCount }
    },
  )
  work.afterCommit(() => tell(outbox))
  return recalled
}

/**
 * Moves the rows of letters. Letters of an outbox that is no longer configured have none within reach; they must not be
 * kept from being closed for ever.
 */
async function moveAll(
  posts: OutboxPosts,
  work: OfficeWork,
  letters: readonly Placed[],
  { tell }: SourceListeners,
  move: (tx: Session, rows: LetterRows, these: readonly OutboxAndRow[]) => Promise<void>,
): Promise<void> {
  const places = await rowsOf(
    work.tx,
    letters.map(({ id }) => id),
  )
  for (const [outbox, these] of Map.groupBy(places, (place) => place.outbox)) {
    const post = posts.all().find(({ name }) => name === outbox)
    if (post === undefined) continue
    await atRows(post, work.tx, 'outbox.move', (tx, rows) => move(tx, rows, these))
    work.afterCommit(() => tell(outbox))
  }
}
