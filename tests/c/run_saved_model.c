/* Loads a SavedModel with TensorFlow's C library, as servers do, and answers one text: no Python, no other library.
   Usage: run_saved_model FOLDER INPUT_OP OUTPUT_OP LABEL_INDEX PROBABILITIES_INDEX TEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static void require_ok(TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s\n", TF_Message(status));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const char* tags[] = {"serve"};
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_Session* session =
      TF_LoadSessionFromSavedModel(TF_NewSessionOptions(), NULL, argv[1], tags, 1, graph, NULL, status);
  require_ok(status);

  int64_t one_text[] = {1};
  TF_Tensor* text = TF_AllocateTensor(TF_STRING, one_text, 1, sizeof(TF_TString));
  TF_StringInit(TF_TensorData(text));
  TF_StringCopy(TF_TensorData(text), argv[6], strlen(argv[6]));

  TF_Output input = {TF_GraphOperationByName(graph, argv[2]), 0};
  TF_Operation* answer = TF_GraphOperationByName(graph, argv[3]);
  TF_Output outputs[] = {{answer, atoi(argv[4])}, {answer, atoi(argv[5])}};
  TF_Tensor* results[2];
  TF_SessionRun(session, NULL, &input, &text, 1, outputs, results, 2, NULL, 0, NULL, status);
  require_ok(status);

  const TF_TString* label = TF_TensorData(results[0]);
  printf("%.*s\n", (int)TF_StringGetSize(label), TF_StringGetDataPointer(label));
  const float* probabilities = TF_TensorData(results[1]);
  for (int64_t i = 0; i < TF_Dim(results[1], 1); i++) printf("%.9g\n", probabilities[i]);
  return 0;
}
