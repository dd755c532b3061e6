/**
 * Stories of dead jobs that counting by checkpoints gets wrong, each with what is true at its end and what checkpoints make of it.
 * Time passes between acts: none of them goes wrong for want of a clock that is fine enough, but for the one that is about that.
 */
import { K, type Story } from './books.ts'
import type { NaiveOptions } from './naive.ts'

export interface Tale {
  /** Whom it is about, and what is promised. */
  readonly promise: string
  readonly story: Story
  /** What every reading must be, in turn. */
  readonly dead: readonly number[]
  /** What checkpoints say at the end, and how those were done that say so. */
  readonly checkpoints: readonly { readonly say: number; readonly options?: NaiveOptions }[]
}

const SECOND = 1_000_000

/** Does acts a second apart. */
const inTurn =
  (...acts: readonly Story[]): Story =>
  async (books) => {
    for (const act of acts) {
      await act(books)
      await books.pass(SECOND)
    }
  }

const die =
  (job: string, consumer = K): Story =>
  (books) =>
    books.die(job, consumer)
const requeue =
  (job: string): Story =>
  (books) =>
    books.requeue(job)
const fold: Story = (books) => books.fold()
const read: Story = (books) => books.read()

/** A job that died and was counted: there is a summary, and something to subtract from. */
const begun = inTurn(die('first'), fold)

export const TALES: readonly Tale[] = [
  {
    // H1
    promise: 'a job that died and was requeued before the fold is counted zero times',
    story: inTurn(begun, die('job'), read, requeue('job'), read, fold, read),
    dead: [2, 1, 1],
    checkpoints: [{ say: 0 }, { say: 0, options: { floor: true } }],
  },
  {
    promise: 'jobs that died and were all requeued before the fold are counted zero times',
    story: inTurn(begun, die('a'), die('b'), (books) => books.requeueAll(), read, fold, read),
    dead: [0, 0],
    checkpoints: [{ say: -2 }, { say: 1, options: { requeueSubtracts: false } }],
  },
  {
    // H2
    promise: 'a job that died and was deleted before the fold takes nothing from the others',
    story: inTurn(begun, die('job'), (books) => books.erase('job'), read, fold, read),
    dead: [1, 1],
    checkpoints: [{ say: 0 }, { say: 0, options: { floor: true } }],
  },
  {
    promise: 'jobs that died and were purged before the fold leave zero, and nothing below it',
    story: inTurn(begun, die('a'), die('b'), (books) => books.purge(), read, fold, read),
    dead: [0, 0],
    checkpoints: [{ say: -2 }],
  },
  {
    // H3
    promise: 'a job that was requeued and died again is counted once',
    story: inTurn(begun, requeue('first'), read, die('first'), read, fold, read),
    dead: [0, 1, 1],
    checkpoints: [{ say: 2, options: { requeueSubtracts: false } }],
  },
  {
    // H4
    promise: 'a dead job that its consumer takes is dead no more, and once more when it dies again',
    story: inTurn(begun, (books) => books.take('first'), read, fold, read, die('first'), read, fold, read),
    dead: [0, 0, 1, 1],
    checkpoints: [{ say: 2 }],
  },
  {
    // H6
    promise: 'of two jobs that died in the same second, before and after the fold, both are counted',
    story: async (books) => {
      await begun(books)
      await books.die('before')
      await books.pass(300_000)
      await books.fold()
      await books.pass(300_000)
      await books.die('after')
      await books.read()
      await books.pass(SECOND)
      await books.fold()
      await books.read()
    },
    dead: [3, 3],
    checkpoints: [{ say: 2, options: { grainUs: SECOND } }],
  },
  {
    promise: 'of two jobs that died in the same moment, before and after the fold, both are counted',
    story: async (books) => {
      await begun(books)
      await books.die('before')
      await books.fold()
      await books.die('after')
      await books.read()
      await books.pass(SECOND)
      await books.fold()
      await books.read()
    },
    dead: [3, 3],
    checkpoints: [{ say: 2 }],
  },
  {
    // H13
    promise: 'a job is not deleted for a consumer of the same id on another channel, and no count moves',
    story: inTurn(
      begun,
      die('other', 'd/k'),
      fold,
      (books) => books.erase('first', 'd/k'),
      read,
      fold,
      read,
      (books) => books.read('d/k'),
    ),
    dead: [1, 1, 1],
    checkpoints: [{ say: 0 }],
  },
]
