/** What a retry would send, without sending it. */
import { Alert, Modal } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { previewRetry } from '../acts/calls.ts'
import { reasonOf } from '../api/call.ts'
import type { LetterKey, RetryPreview } from '../api/types.ts'
import { Waiting } from '../kit/page.tsx'
import { DryRunResult } from './dry-run-result.tsx'

export interface DryRunDialogProps {
  readonly letter: LetterKey
  readonly isOpen: boolean
  readonly close: () => void
}

export function DryRunDialog({ letter, isOpen, close }: DryRunDialogProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      size="lg"
      title="Dry run: what a retry would send"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {isOpen && <DryRun letter={letter} />}
    </Modal>
  )
}

/** Each look is one of its own: nothing is kept. */
let looks = 0

function DryRun({ letter }: { readonly letter: LetterKey }) {
  const [look] = useState(() => ++looks)
  const { data, error } = useQuery<RetryPreview>({
    queryKey: ['dry-run', look],
    queryFn: ({ signal }) => previewRetry(letter, undefined, signal),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  if (error !== null) {
    return (
      <Alert color="red" title="Would be refused" role="alert">
        {reasonOf(error)}
      </Alert>
    )
  }
  if (data === undefined) return <Waiting what="what would be sent" />
  return <DryRunResult preview={data} />
}
