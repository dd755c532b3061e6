/** The keys of the list. */
import { useCanGoBack, useNavigate, useRouter } from '@tanstack/react-router'
import { nameOf } from '../acts/letter-name.ts'
import type { LetterItem, LetterKey } from '../api/types.ts'
import { useKeys } from '../keys/keys.tsx'
import { useRefusal } from '../kit/role.tsx'
import type { Cursor } from '../kit/use-cursor.ts'
import { retryRefusal } from '../letter/refusals.ts'
import { useToasts } from '../toasts/toasts.tsx'
import type { LetterList } from './use-letter-list.ts'
import type { ManyActs } from './use-many-acts.ts'
import type { Selection } from './use-selection.ts'

export interface ListKeysOptions {
  readonly list: LetterList
  readonly selection: Selection
  readonly cursor: Cursor
  readonly current: LetterItem | undefined
  readonly panel: string | undefined
  readonly acts: ManyActs
  readonly showPanel: (letter: LetterKey | null) => void
}

export function useListKeys({
  list,
  selection,
  cursor,
  current,
  panel,
  acts,
  showPanel,
}: ListKeysOptions): void {
  const navigate = useNavigate()
  const router = useRouter()
  const canGoBack = useCanGoBack()
  const { show } = useToasts()
  const notAllowed = useRefusal('operator')
  const withCurrent = (act: (letter: LetterItem) => void) => () => {
    if (current !== undefined) act(current)
  }
  const unlessRefused = (title: string, refusal: string | null, act: () => void) => {
    const reason = notAllowed ?? refusal
    if (reason === null) act()
    else show({ title, message: reason })
  }
  const open = withCurrent(
    ({ engine, rowKey }) => void navigate({ to: '/letters/$engine/$rowKey', params: { engine, rowKey } }),
  )
  useKeys('Letters', [
    ...cursor.keys,
    {
      keys: 'x',
      does: 'select the row',
      run: withCurrent((letter) => selection.toggle(nameOf(letter), false)),
    },
    {
      keys: 'X',
      does: 'select up to the row',
      run: withCurrent((letter) => selection.toggle(nameOf(letter), true)),
    },
    { keys: '*', does: 'select all that match', run: selection.selectAll },
    { keys: 'r', does: 'retry', run: () => unlessRefused('No retry', acts.refusals.retry, acts.retry) },
    {
      keys: 'e',
      does: 'edit and retry',
      run: withCurrent((letter) =>
        unlessRefused(
          'No edit',
          retryRefusal(letter),
          () =>
            void navigate({
              to: '/letters/$engine/$rowKey/edit',
              params: { engine: letter.engine, rowKey: letter.rowKey },
            }),
        ),
      ),
    },
    {
      keys: 'd',
      does: 'discard',
      run: () => unlessRefused('No discard', acts.refusals.discard, acts.discard),
    },
    { keys: 'o', does: 'open', run: open },
    { keys: 'Enter', does: 'open', run: open },
    {
      keys: ' ',
      does: 'show or hide the panel',
      run: withCurrent((letter) => showPanel(panel === nameOf(letter) ? null : letter)),
    },
    { keys: 'n', does: 'next page', run: () => list.next?.() },
    { keys: 'p', does: 'previous page', run: () => list.previous?.() },
    {
      keys: 'Escape',
      does: 'clear the selection, close the panel, go back',
      run: () => {
        if (!selection.isEmpty) selection.clear()
        else if (panel !== undefined) showPanel(null)
        else if (canGoBack) router.history.back()
      },
    },
  ])
}
