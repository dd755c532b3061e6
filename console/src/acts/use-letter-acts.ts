/**
 * Acts on one letter. They happen at once, without a question; a discard, and a restore of what was discarded or given up, can be
 * undone for ten seconds. What the server refuses is said in its words.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { reasonOf } from '../api/call.ts'
import { randomId } from '../api/random-id.ts'
import type { LetterDetail, LetterItem, LetterKey, Page } from '../api/types.ts'
import { useToasts } from '../toasts/toasts.tsx'
import { changeLetter, type RetryRequest, retryLetter } from './calls.ts'
import { nameOf } from './letter-name.ts'

/** Each is true when it was done. */
export interface LetterActs {
  retry(letter: LetterItem, request?: RetryRequest): Promise<boolean>
  discard(letter: LetterItem, notes: string): Promise<boolean>
  restore(letter: LetterItem): Promise<boolean>
}

/** Letters with an act under way: a key that is pressed twice acts once. */
const underWay = new Set<string>()

export function useLetterActs(): LetterActs {
  const client = useQueryClient()
  const { show } = useToasts()
  return useMemo(() => {
    const attempt = async (
      letter: LetterItem,
      refused: string,
      act: () => Promise<void>,
    ): Promise<boolean> => {
      const name = nameOf(letter)
      if (underWay.has(name)) return false
      underWay.add(name)
      try {
        await act()
        return true
      } catch (error) {
        show({ title: refused, message: reasonOf(error), tone: 'failed' })
        void client.invalidateQueries({ queryKey: ['letter', letter.engine, letter.rowKey] })
        return false
      } finally {
        underWay.delete(name)
      }
    }
    const become = async (letter: LetterItem, status: LetterItem['status'], notes: string | null) =>
      showChanged(client, await changeLetter(letter, status, notes, randomId()))

    const acts: LetterActs = {
      retry: (letter, request = {}) =>
        attempt(letter, `${letter.instanceId} was not sent`, async () => {
          const { queue } = await retryLetter(letter, request, randomId())
          showChanged(client, {
            ...letter,
            status: 'Resolved',
            resolution: 'retry',
            confirmedAtUtc: null,
            resolvedAtUtc: new Date().toISOString(),
          })
          show({ title: `${letter.instanceId} was sent`, message: `On its way to ${queue}.` })
        }),
      discard: (letter, notes) =>
        attempt(letter, `${letter.instanceId} was not discarded`, async () => {
          await become(letter, 'Resolved', notes)
          const undo = () =>
            void attempt(letter, `${letter.instanceId} was not restored`, async () => {
              await become(letter, 'Pending', 'Discard undone')
              show({ title: `${letter.instanceId} is pending again` })
            })
          show({ title: `${letter.instanceId} was discarded`, message: notes, undo })
        }),
      restore: (letter) =>
        attempt(letter, `${letter.instanceId} was not restored`, async () => {
          await become(letter, 'Pending', null)
          const undo = undoOfRestore(letter, become)
          show({
            title: `${letter.instanceId} is pending again`,
            ...(undo === null
              ? {}
              : { undo: () => void attempt(letter, `${letter.instanceId} is still pending`, undo) }),
          })
        }),
    }
    return acts
  }, [client, show])
}

/** What was sent or completed cannot be made so again by a change of status. */
function undoOfRestore(
  letter: LetterItem,
  become: (letter: LetterItem, status: LetterItem['status'], notes: string | null) => Promise<void>,
): (() => Promise<void>) | null {
  if (letter.status === 'Expired') return () => become(letter, 'Expired', letter.resolutionNotes)
  if (letter.resolution !== 'discard') return null
  return () => become(letter, 'Resolved', letter.resolutionNotes ?? 'Restore undone')
}

/** Shows a changed letter where it stands; lists that may move are read anew by themselves. */
function showChanged(client: QueryClient, letter: LetterItem): void {
  const isIt = ({ engine, rowKey }: LetterKey) => engine === letter.engine && rowKey === letter.rowKey
  client.setQueriesData<Page<LetterItem>>({ queryKey: ['letters'] }, (page) =>
    page === undefined
      ? page
      : { ...page, items: page.items.map((item) => (isIt(item) ? { ...item, ...listed(letter) } : item)) },
  )
  client.setQueriesData<LetterDetail>({ queryKey: ['letter', letter.engine, letter.rowKey] }, (detail) =>
    detail === undefined ? detail : { ...detail, ...listed(letter) },
  )
  void client.invalidateQueries({ queryKey: ['letter', letter.engine, letter.rowKey] })
  setTimeout(() => {
    for (const topic of ['letters', 'total', 'counts', 'signatures', 'signature', 'overview'])
      void client.invalidateQueries({ queryKey: [topic] })
  }, DRAWN_MS)
}

/** A list decides by what it shows whether it may be read anew: the change has to be there first. */
const DRAWN_MS = 100

/** What an act changes of a letter, so that nothing else of a case file is overwritten. */
const listed = ({
  status,
  resolution,
  confirmedAtUtc,
  resolvedAtUtc,
  resolvedBy,
  resolutionNotes,
}: LetterItem) => ({
  status,
  resolution,
  confirmedAtUtc,
  resolvedAtUtc,
  resolvedBy,
  resolutionNotes,
})
