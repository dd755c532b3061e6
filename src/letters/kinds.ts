/**
 * The kinds of sources: what the heart has to know of letters of a source before any of them is opened, as plain values. They are
 * declared once in a process, by the list of sources; nothing here knows one of them by its name.
 */

import { SOURCE_NAMES } from './shapes.ts'

/** The name of a source. Where it has no engines of its own it is the name of their engine, too. */
export type SourceName = string

export interface SourceKind {
  readonly name: SourceName
  /** What history calls acts on its letters, where it has words of its own: by act, for letters of the engine of its name. */
  readonly words?: Readonly<Record<string, string>>
  /** Everything that history may call what happens to its letters, besides what it calls that of all letters. */
  readonly operations?: readonly string[]
  /** Its letters go back to queues of the office: they can be moved to another queue, and keep the order of their keys there. */
  readonly goesToQueues?: boolean
  /** The engines of its letters have names of their own; left out: there is one, called like the source. */
  readonly hasEngines?: boolean
  /** Its letters are of engines that other sources have letters of, too; of its own name are those whose engine nobody can have. */
  readonly sharesEngines?: boolean
  /** Anybody may report letters of its engine. */
  readonly takesReports?: boolean
  /** Its letters were items of the office's queues, whose ids are their source ids. */
  readonly capturesItems?: boolean
  /** Its letters leave over a network: one is leased while it is sent, and counted once it has left. */
  readonly sendsOutside?: boolean
  /** Letters of one key leave in order, those of different keys side by side. */
  readonly ordersByKey?: boolean
  /** Why its letters cannot be repaired; left out: they can. */
  readonly unrepairable?: string
}

const KINDS = new Map<SourceName, { readonly kind: SourceKind; readonly times: number }>()

/** Makes a kind of source known until all who did so forget it: a process may open several offices. Gives how to forget it. */
export function declareKind(kind: SourceKind): () => void {
  const { name } = kind
  KINDS.set(name, { kind, times: (KINDS.get(name)?.times ?? 0) + 1 })
  nameAll()
  let isForgotten = false
  return () => {
    if (isForgotten) return
    isForgotten = true
    const times = (KINDS.get(name)?.times ?? 0) - 1
    if (times > 0) KINDS.set(name, { kind, times })
    else KINDS.delete(name)
    nameAll()
  }
}

/** The schema of a source's name is older than the list, and allows what is declared. */
const nameAll = (): void => void SOURCE_NAMES.splice(0, Number.POSITIVE_INFINITY, ...KINDS.keys())

/** Of a source that is not there any more nothing is known but its name. */
export const kindOf = (name: SourceName): SourceKind => KINDS.get(name)?.kind ?? { name }

/** All of them, in the order of the list. */
export const sourceKinds = (): readonly SourceKind[] => [...KINDS.values()].map(({ kind }) => kind)

/** The only source with engines, of whose queues it is what dies there; and the only one of what others report. */
export const sourceOfEngines = (): SourceName => onlyOneThat('hasEngines')
export const sourceOfReports = (): SourceName => onlyOneThat('takesReports')

function onlyOneThat(trait: 'hasEngines' | 'takesReports'): SourceName {
  const kind = sourceKinds().find((each) => each[trait] === true)
  if (kind === undefined) throw new Error(`no source was declared that ${trait}`)
  return kind.name
}

export const sourceNames = (): readonly SourceName[] => SOURCE_NAMES

/** Letters of these go back to queues, and are kept in order by their instance; the others have an order of their own. */
export const goesToQueues = (source: SourceName): boolean => kindOf(source).goesToQueues === true
