/* Loads a SavedModel with TensorFlow's C library, as servers do, and runs it once: no Python, no other library.

   Usage: run_saved_model FOLDER [input OP VALUE]... [output OP INDEX]...
   VALUE is text=… for a batch of one string, or ids=1,2,3 for a batch of one row of int32.
   Prints the elements of the outputs, one a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

enum { MOST = 8 };

static void require(int good, const char* message) {
  if (good) return;
  fprintf(stderr, "%s\n", message);
  exit(1);
}

static TF_Output place(TF_Graph* graph, const char* name, int index) {
  TF_Output output = {TF_GraphOperationByName(graph, name), index};
  require(output.oper != NULL, name);
  return output;
}

static TF_Tensor* tensor_of(const char* value) {
  int64_t shape[] = {1, 0};
  if (strncmp(value, "text=", 5) == 0) {
    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, shape, 1, sizeof(TF_TString));
    TF_StringInit(TF_TensorData(tensor));
    TF_StringCopy(TF_TensorData(tensor), value + 5, strlen(value + 5));
    return tensor;
  }
  require(strncmp(value, "ids=", 4) == 0, value);
  for (const char* character = value + 3; *character; character++) shape[1] += *character == ',' || *character == '=';
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, shape, 2, shape[1] * sizeof(int32_t));
  char* rest = (char*)value + 3;
  for (int64_t i = 0; i < shape[1]; i++) ((int32_t*)TF_TensorData(tensor))[i] = (int32_t)strtol(rest + 1, &rest, 10);
  return tensor;
}

static void print(const TF_Tensor* tensor) {
  const TF_TString* strings = TF_TensorData(tensor);
  const float* numbers = TF_TensorData(tensor);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); i++) {
    if (TF_TensorType(tensor) == TF_STRING)
      printf("%.*s\n", (int)TF_StringGetSize(&strings[i]), TF_StringGetDataPointer(&strings[i]));
    else
      printf("%.9g\n", numbers[i]);
  }
}

int main(int argc, char** argv) {
  require(argc >= 2 && argc % 3 == 2 && argc < 3 * MOST, "see the usage");
  const char* tags[] = {"serve"};
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_Session* session =
      TF_LoadSessionFromSavedModel(TF_NewSessionOptions(), NULL, argv[1], tags, 1, graph, NULL, status);
  require(TF_GetCode(status) == TF_OK, TF_Message(status));

  TF_Output inputs[MOST], outputs[MOST];
  TF_Tensor *values[MOST], *results[MOST];
  int num_inputs = 0, num_outputs = 0;
  for (char** word = argv + 2; word < argv + argc; word += 3) {
    if (strcmp(word[0], "input") == 0) {
      inputs[num_inputs] = place(graph, word[1], 0);
      values[num_inputs++] = tensor_of(word[2]);
    } else {
      outputs[num_outputs++] = place(graph, word[1], atoi(word[2]));
    }
  }
  TF_SessionRun(session, NULL, inputs, values, num_inputs, outputs, results, num_outputs, NULL, 0, NULL, status);
  require(TF_GetCode(status) == TF_OK, TF_Message(status));
  for (int i = 0; i < num_outputs; i++) print(results[i]);
  return 0;
}
