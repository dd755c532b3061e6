/** What can be done with a letter, as buttons and keys; what cannot be done says why. */
import { Group } from '@mantine/core'
import { useCanGoBack, useNavigate, useRouter } from '@tanstack/react-router'
import { useState } from 'react'
import { DiscardDialog } from '../acts/discard-dialog.tsx'
import { useLetterActs } from '../acts/use-letter-acts.ts'
import type { LetterDetail } from '../api/types.ts'
import { useKeys } from '../keys/keys.tsx'
import { ActButton } from '../kit/act-button.tsx'
import { useRefusal } from '../kit/role.tsx'
import { useToasts } from '../toasts/toasts.tsx'
import { DryRunDialog } from './dry-run-dialog.tsx'
import { exportLetter } from './export-letter.ts'
import { discardRefusal, restoreRefusal, retryRefusal } from './refusals.ts'

export function LetterActsBar({ letter }: { readonly letter: LetterDetail }) {
  const acts = useLetterActs()
  const navigate = useNavigate()
  const [isDryRun, setDryRun] = useState(false)
  const [isDiscarding, setDiscarding] = useState(false)
  const noRetry = retryRefusal(letter)
  const noDiscard = discardRefusal(letter)
  const { engine, rowKey } = letter
  const retry = () => void acts.retry(letter)
  const edit = () => void navigate({ to: '/letters/$engine/$rowKey/edit', params: { engine, rowKey } })
  const discard = () => setDiscarding(true)
  useLetterKeys(letter, { retry, edit, discard, noRetry, noDiscard })
  return (
    <Group gap="xs" className="letter-acts">
      <ActButton needs="operator" refusal={noRetry} hotkey="r" onClick={retry}>
        Retry
      </ActButton>
      <ActButton variant="default" needs="operator" refusal={noRetry} hotkey="e" onClick={edit}>
        Edit…
      </ActButton>
      <ActButton variant="default" needs="operator" refusal={noRetry} onClick={() => setDryRun(true)}>
        Dry run
      </ActButton>
      <ActButton variant="default" needs="operator" refusal={noDiscard} hotkey="d" onClick={discard}>
        Discard…
      </ActButton>
      <ActButton
        variant="default"
        needs="operator"
        refusal={restoreRefusal(letter)}
        onClick={() => void acts.restore(letter)}
      >
        Restore
      </ActButton>
      <ActButton variant="default" onClick={() => exportLetter(letter)}>
        Export
      </ActButton>
      <DryRunDialog letter={letter} isOpen={isDryRun} close={() => setDryRun(false)} />
      <DiscardDialog letter={isDiscarding ? letter : null} close={() => setDiscarding(false)} />
    </Group>
  )
}

interface KeyActs {
  readonly retry: () => void
  readonly edit: () => void
  readonly discard: () => void
  readonly noRetry: string | null
  readonly noDiscard: string | null
}

function useLetterKeys(letter: LetterDetail, { retry, edit, discard, noRetry, noDiscard }: KeyActs): void {
  const navigate = useNavigate()
  const router = useRouter()
  const canGoBack = useCanGoBack()
  const { show } = useToasts()
  const notAllowed = useRefusal('operator')
  const unlessRefused = (title: string, refusal: string | null, act: () => void) => () => {
    const reason = notAllowed ?? refusal
    if (reason === null) act()
    else show({ title, message: reason })
  }
  const { signature } = letter
  useKeys('Letter', [
    { keys: 'r', does: 'retry', run: unlessRefused('No retry', noRetry, retry) },
    { keys: 'e', does: 'edit and retry', run: unlessRefused('No edit', noRetry, edit) },
    { keys: 'd', does: 'discard', run: unlessRefused('No discard', noDiscard, discard) },
    {
      keys: 'o',
      does: 'open its signature',
      run: () => void navigate({ to: '/signatures/$signature', params: { signature } }),
    },
    {
      keys: 'Escape',
      does: 'go back',
      run: () => {
        if (canGoBack) router.history.back()
        else void navigate({ to: '/letters' })
      },
    },
  ])
}
