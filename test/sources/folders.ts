/**
 * A complete source of letters in one file, to show what one is made of: a folder whose files are messages. A handler gets each file; one
 * that it refuses becomes a letter and waits in `.dead`, a retry puts it back, and what is given up lies in `.given-up`.
 *
 * Files are moved when the transaction of the act is durable. A crash between the two is made up for at the next start: the letter says
 * where its file belongs.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Static } from 'typebox'
import { microseconds } from '../../src/core/clock.ts'
import { failure } from '../../src/core/errors.ts'
import { Rounds, type Service } from '../../src/core/rounds.ts'
import { file, section, wholeNumber } from '../../src/core/settings/kinds.ts'
import { describeError } from '../../src/core/thrown.ts'
import type { SourceDemo } from '../../src/demo/story/story.ts'
import type { Invariant } from '../../src/letters/audit/invariant.ts'
import { closeCasesOf } from '../../src/letters/confirm.ts'
import type { LetterSummary } from '../../src/letters/letter.ts'
import { readLetterById } from '../../src/letters/lists/detail.ts'
import type { Departing, LetterSource } from '../../src/letters/source.ts'
import { inOffice } from '../../src/letters/work.ts'
import type { OfficeParts, SourceModule } from '../../src/sources/source-module.ts'

const NAME = 'folders'
const ROOMS = { live: '.', dead: '.dead', givenUp: '.given-up' } as const
type Room = keyof typeof ROOMS

/** Its section of a configuration, `folders:`. */
const FoldersSchema = section('A folder of files as a queue.', {
  path: file('The folder.', { default: './folder', allowed: 'the path of a folder' }),
  everySeconds: wholeNumber('How often it is looked at.', { from: 1, to: 3_600, default: 1 }),
})
type FolderSettings = Static<typeof FoldersSchema>

/** What it throws is what the message died of. */
export type HandleFile = (content: Buffer, name: string) => Promise<void> | void

/** What only it promises: a letter can be put back under the name that its file had. */
const filesHaveNames: Invariant = {
  id: 'F1',
  promise: 'a letter of a folder is known by the name of a file in it',
  ofLetters: () => ({
    *look({ id, letter }) {
      if (letter?.engine === NAME && !/^[^/]+$/.test(String(letter.sourceId)))
        yield { what: `letter ${id} names no file of a folder`, row: { letter: id, name: letter.sourceId } }
    },
  }),
}

export interface FolderFace {
  readonly folder: Folder
}

/** The line for the list of sources. */
export const folderSource = (
  handle: HandleFile,
): SourceModule<typeof NAME, typeof FoldersSchema, FolderSettings, FolderFace> => ({
  name: NAME,
  title: 'Folders',
  kind: {},
  settings: {
    schema: FoldersSchema,
  },
  invariants: [filesHaveNames],
  open(parts, settings = { path: './folder', everySeconds: 1 }) {
    const folder = new Folder(settings, handle, parts)
    return {
      letters: folder.source,
      services: [folder],
      face: { folder },
      metrics: async () => `folders_waiting ${folder.waiting().length}\n`,
      health: async () => ({ state: 'ok', note: null }),
    }
  },
  demo: async () => foldersDemo,
})

/** Its part in the demo: files are put into a folder now, and were in the past. */
const foldersDemo: SourceDemo<FolderSettings, FolderFace> = {
  section: (given) => ({ ...given, path: mkdtempSync(join(tmpdir(), 'bartleby-demo-folder-')) }),
  open({ folder }, { chance }) {
    const put = () => folder.put(`${chance.hex(8)}.json`, '{"invented":true}')
    const workOn = () => folder.rounds[0].now()
    const died = async () => {
      const name = put()
      await workOn()
      const letter = await folder.find(name)
      return letter === undefined ? null : { letters: [letter], workOn }
    }
    return { happens: [{ weight: 5, act: async () => put() }], died: [{ weight: 10, act: died }] }
  },
}

export class Folder implements Service {
  readonly name = NAME
  readonly rounds: readonly [Rounds]
  readonly source: LetterSource
  /** Being handled. */
  readonly busy = new Set<string>()
  readonly #path: string
  readonly #handler: HandleFile
  readonly #parts: OfficeParts

  constructor({ path, everySeconds }: FolderSettings, handle: HandleFile, parts: OfficeParts) {
    this.#path = path
    this.#handler = handle
    this.#parts = parts
    for (const room of Object.values(ROOMS)) mkdirSync(join(path, room), { recursive: true })
    const rounds = new Rounds({
      ...{ name: NAME, clock: parts.clock, log: parts.log, everyUs: microseconds(everySeconds) },
      act: () => this.#round(),
      trouble: 'files of a folder were not handled; they are tried again',
    })
    this.rounds = [rounds]
    this.source = {
      name: NAME,
      render: async (_read, letters, edits) =>
        letters.map((letter) =>
          this.has('dead', letter.sourceId)
            ? { letter, queue: path, edit: edits.get(letter.id) ?? null }
            : { letter, refusal: failure('letter_queue_gone', { queue: letter.sourceId }) },
        ),
      send: async (work, rendered) =>
        rendered.map(({ letter, edit }) => {
          work.afterCommit(() => this.#move(letter, 'live', edit?.payload))
          return { letter, queue: path, messageId: letter.sourceId }
        }),
      takeBack: async (_work, letters) =>
        letters.map((letter) =>
          this.busy.has(letter.sourceId)
            ? { letter, refusal: failure('letter_in_flight', { queue: path }) }
            : { letter, deliveries: 0 },
        ),
      moved: async (work, letters, act) => {
        // What lies in `.given-up` is the user's to throw away.
        if (act === 'remove') return
        const room = act === 'restore' || act === 'reopen' ? 'dead' : 'givenUp'
        for (const { id } of letters) {
          const letter = await readLetterById(work.tx, id)
          if (letter !== null) work.afterCommit(() => this.#move(letter, room))
        }
      },
    }
  }

  /** Puts every file where its letter says, then begins. */
  async start(): Promise<void> {
    for (const name of this.waiting('dead')) {
      const letter = await this.find(name)
      if (letter !== undefined) this.#move(letter, roomOf(letter))
    }
    this.rounds[0].start()
  }

  stop(): Promise<void> {
    return this.rounds[0].stop()
  }

  waiting(room: Room = 'live'): readonly string[] {
    const entries = readdirSync(join(this.#path, ROOMS[room]), { withFileTypes: true })
    return entries.flatMap((entry) => (entry.isFile() ? entry.name : [])).toSorted()
  }

  put(name: string, content: string): string {
    writeFileSync(this.#file('live', name), content)
    return name
  }

  has(room: Room, name: string): boolean {
    return existsSync(this.#file(room, name))
  }

  #file(room: Room, name: string): string {
    return join(this.#path, ROOMS[room], name)
  }

  /** Wherever it lies; `content` in place of what it was. */
  #move({ sourceId }: Pick<Departing, 'sourceId'>, to: Room, content?: Uint8Array | null): void {
    const from = (['live', 'dead', 'givenUp'] as const).find((room) => this.has(room, sourceId))
    if (from === undefined) return
    if (content != null) writeFileSync(this.#file(from, sourceId), content)
    if (from !== to) renameSync(this.#file(from, sourceId), this.#file(to, sourceId))
  }

  async #round(): Promise<void> {
    for (const name of this.waiting()) {
      this.busy.add(name)
      try {
        await this.#handle(name)
      } finally {
        this.busy.delete(name)
      }
    }
  }

  async #handle(name: string): Promise<void> {
    const { clock, store } = this.#parts
    const content = readFileSync(this.#file('live', name))
    try {
      await this.#handler(content, name)
    } catch (thrown) {
      await this.#bury(name, content, thrown)
      this.#move({ sourceId: name }, 'dead')
      return
    }
    const letter = await this.find(name)
    if (letter !== undefined)
      await inOffice(store.db, clock, 'folders.confirm', (work) => closeCasesOf(work, [letter.id], new Map()))
    rmSync(this.#file('live', name))
  }

  /** A new letter, or the next failure of one that was sent back. */
  async #bury(name: string, payload: Buffer, thrown: unknown): Promise<void> {
    const dequeueCount = ((await this.find(name))?.dequeueCount ?? 0) + 1
    await this.#parts.letters.capture({
      ...{ source: NAME, engine: NAME, instanceId: this.#path, correlationId: name, sourceId: name },
      ...{ originalQueue: this.#path, encoding: '', kind: '', reference: '', headers: null, payload },
      ...describeError(thrown),
      ...{ dequeueCount, firstFailureAt: null, lastFailureAt: this.#parts.clock.now() },
      ...{ failedBy: NAME, actor: NAME },
    })
  }

  /** The letter of a file. */
  async find(name: string): Promise<LetterSummary | undefined> {
    const { items } = await this.#parts.letters.list({ engine: NAME, correlationId: name })
    return items.find(({ sourceId }) => sourceId === name)
  }
}

/** Where the file of a letter belongs. */
const roomOf = ({ status, resolution }: LetterSummary): Room =>
  status === 'Pending' ? 'dead' : resolution === 'retry' ? 'live' : 'givenUp'
